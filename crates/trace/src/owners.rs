//! Which APIs have queues of their own in a trace, and so which of several APIs a handle is one of.

use hetrace_model::Model;

use crate::facts::objects::queue_types;
use crate::hash::QuickMap;
use crate::trace::{FunctionId, Trace};

/// An API's position in [`Functions::apis`](crate::trace::Functions::apis).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiIndex(pub u32);

/// The APIs that defined the queues and devices of a trace.
///
/// An API without any is layered on another: what its calls name and wait for may be of any API.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// By number of the queue; not those of APIs that are not known.
    of_queue: QuickMap<u32, ApiIndex>,
    /// By API: whether it has queues or devices and another one has as well.
    own: Vec<bool>,
    /// By function.
    of_function: Vec<ApiIndex>,
}

impl Owners {
    /// Reads the definitions of a trace.
    pub fn new(trace: &Trace) -> Self {
        let index = |at: usize| ApiIndex(u32::try_from(at).unwrap_or(u32::MAX));
        let apis = trace.functions().apis();
        let position = |api: &str| apis.iter().position(|known| known == api).map(index);
        let (queues, devices) = (trace.names().queues(), trace.names().devices());
        let of_queue = queues.iter().filter_map(|q| Some((q.id, position(&q.api)?))).collect();
        let defining = queues.iter().map(|q| &q.api).chain(devices.iter().map(|d| &d.api));
        let owning = defining.filter_map(|api| position(api));
        let functions = trace.functions().all().iter().map(|f| index(f.api)).collect();
        Self::of(of_queue, owning, functions, apis.len())
    }

    pub(crate) fn of(
        of_queue: QuickMap<u32, ApiIndex>,
        owning: impl Iterator<Item = ApiIndex>,
        of_function: Vec<ApiIndex>,
        apis: usize,
    ) -> Self {
        let mut own = vec![false; apis];
        for api in owning {
            if let Some(own) = own.get_mut(api.0 as usize) {
                *own = true;
            }
        }
        // What only one API has is not confused with anything.
        if own.iter().filter(|own| **own).count() < 2 {
            own.fill(false);
        }
        Self { of_queue, own, of_function }
    }

    /// Returns the API of a queue by its number; none if it is not known.
    pub fn of_queue(&self, number: u32) -> Option<ApiIndex> {
        self.of_queue.get(&number).copied()
    }

    /// Returns the API that a function is of.
    pub fn api(&self, function: FunctionId) -> Option<ApiIndex> {
        self.of_function.get(function.index()).copied()
    }

    /// Returns the API of the queues that calls of a function are about; none if those of any API may be meant.
    pub fn of_calls(&self, function: FunctionId) -> Option<ApiIndex> {
        self.api(function).filter(|api| self.is_owner(*api))
    }

    /// Returns the API that has a type for queues, so that a value of the type is a handle of that API; none if
    /// the handle may be one of any API: no model has the type, or the API of the model has no queues.
    pub fn of_type(&self, models: &[Model], base: &str) -> Option<ApiIndex> {
        let at = models.iter().position(|model| queue_types(model).iter().any(|ty| ty == base))?;
        Some(ApiIndex(u32::try_from(at).ok()?)).filter(|api| self.is_owner(*api))
    }

    fn is_owner(&self, api: ApiIndex) -> bool {
        self.own.get(api.0 as usize) == Some(&true)
    }
}
