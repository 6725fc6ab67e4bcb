//! Which records of calls say where in the program the call is made, and where in the record
//! ([`code`](hetrace_model::Interpose::code) of an API's model).

use hetrace_model::Model;
use hetrace_model::layout::{self, Phase};

use crate::output::TraceFolder;
use crate::trigger::FieldPlace;

/// By API and event, where the address is.
#[derive(Debug, Default)]
pub struct Codes(Vec<Vec<Option<FieldPlace>>>);

impl Codes {
    /// An API has recorded something: its model is read, if its calls say where they are made.
    pub fn need(&mut self, folder: &TraceFolder, api: usize) {
        let library = folder.declarations().and_then(|declarations| declarations.library(api));
        let says = |name: &str| library.as_ref()?.load().ok().map(|library| places(&library.model, name));
        let found = library.as_ref().and_then(|library| library.entrance().code.as_deref()).and_then(says);
        if let Some(places) = found {
            if self.0.len() <= api {
                self.0.resize_with(api + 1, Vec::new);
            }
            self.0[api] = places;
        }
    }

    /// The address in a record, if there is one.
    #[inline]
    pub fn read(&self, api: usize, id: u16, body: &[u8]) -> Option<u64> {
        self.0.get(api)?.get(usize::from(id))?.as_ref()?.read_bits(body)
    }
}

/// By the number of the event.
fn places(model: &Model, name: &str) -> Vec<Option<FieldPlace>> {
    let mut places = Vec::new();
    for event in layout::events(model).iter().filter(|event| event.phase == Phase::Entry) {
        let Some(field) = event.fields.iter().position(|field| field.name == *name) else { continue };
        let id = usize::from(event.id);
        if places.len() <= id {
            places.resize(id + 1, None);
        }
        places.get_mut(id).into_iter().for_each(|place| *place = FieldPlace::of(model, &event.fields, field));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_alone_have_the_address_behind_other_fields() {
        let text = r#"{"api":"toy","registry":{"file":"toy.h","sha256":""},"interpose":{"code":"at"},"errors":"e",
            "types":[{"name":"e","kind":"int","size":4},{"name":"place","kind":"uint","size":8}],"enums":[],"info":{},
            "functions":[
            {"name":"toyInit","roles":[],"returns":"e","success":"always","params":[]},
            {"name":"toyRun","roles":[],"returns":"e","success":"always","params":[
                {"name":"n","type":"e","base":"e","pointers":0,"direction":"none","follow":{"how":"value"}},
                {"name":"at","type":"place","base":"place","pointers":0,"direction":"none","follow":{"how":"value"}}]}]}"#;
        let model: Model = serde_json::from_str(text).expect("a model");
        let codes = Codes(vec![Vec::new(), places(&model, "at")]);
        let mut body = 7u32.to_le_bytes().to_vec();
        body.extend(0xffff_8000_1234_5678u64.to_le_bytes());
        let run = layout::entry_id(1);
        assert_eq!(codes.read(1, run, &body), Some(0xffff_8000_1234_5678));
        assert_eq!(codes.read(1, run, &body[..6]), None, "damaged");
        for (api, id) in [(1, run + 1), (1, layout::entry_id(0)), (0, run), (2, run)] {
            assert_eq!(codes.read(api, id, &body), None, "{api} {id}");
        }
    }
}
