//! Finding a libcupti and loading it.

use std::ffi::{CStr, c_char, c_void};

use hetrace_interpose::{Object, each_object, foreign, note};

use super::api::API;
use super::find::{self, Loaded};

/// The variable that names a libcupti.
const VARIABLE: &CStr = c"HETRACE_CUPTI";
/// Variables that name a toolkit.
const TOOLKITS: [&CStr; 2] = [c"CUDA_HOME", c"CUDA_PATH"];
/// A function by which every libcupti is known.
const MARK: &CStr = c"cuptiActivityEnable";
/// Libraries tried at most.
const MOST: usize = 16;

/// Loads one libcupti after the other into [`API`], until `tried` returns true.
/// They stay loaded: CUPTI does not take to being unloaded.
pub fn each(driver_version: i32, mut tried: impl FnMut() -> bool) -> bool {
    let mut known = Known { marks: [0; MOST], count: 0 };
    // SAFETY: NULL, or a text of the environment.
    let named = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if !named.is_null() {
        // SAFETY: `named` is not NULL, so it is a text of the environment.
        if known.open(unsafe { CStr::from_ptr(named) }, &mut tried) {
            return true;
        }
        note(b"the library named by HETRACE_CUPTI is not usable; others are tried");
    }
    // One that the program has is the one that its other tools use.
    let mut present = [None; 4];
    let mut count = 0;
    each_object(|object| {
        if is_cupti(object)
            && let Some(place) = present.get_mut(count)
        {
            *place = Some(*object);
            count += 1;
        }
        true
    });
    for object in present.into_iter().flatten() {
        object.keep();
        if known.try_this(|name| object.definition(name).unwrap_or(std::ptr::null_mut()), &mut tried) {
            return true;
        }
    }
    let loaded = loaded();
    let toolkits = TOOLKITS.map(|name| {
        // SAFETY: NULL, or a text of the environment.
        unsafe {
            let value = libc::getenv(name.as_ptr());
            if value.is_null() { &[][..] } else { CStr::from_ptr(value).to_bytes() }
        }
    });
    // SAFETY: a NUL-terminated path.
    let exists = |path: &CStr| unsafe { libc::access(path.as_ptr(), libc::R_OK) } == 0;
    let newest = if driver_version > 0 { driver_version as u32 / 1000 } else { 13 };
    find::each(&loaded, newest, &toolkits, exists, |path| known.open(path, &mut tried))
}

/// Whether the driver is there, as CUPTI will look for it.
pub fn has_driver() -> bool {
    // SAFETY: a NUL-terminated name; nothing is loaded.
    let handle = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        // SAFETY: no preconditions. As below.
        unsafe { libc::dlerror() };
    }
    !handle.is_null()
}

/// Whether a library is a libcupti, and not this one, which only exports some of
/// its names.
pub fn is_cupti(object: &Object) -> bool {
    !object.contains(is_cupti as *const c_void) && object.definition(MARK).is_some()
}

/// Libraries that were tried, by where [`MARK`] is: several paths may lead to one.
struct Known {
    marks: [usize; MOST],
    count: usize,
}

impl Known {
    fn open(&mut self, path: &CStr, tried: &mut impl FnMut() -> bool) -> bool {
        foreign::open(path, |look_up| self.try_this(look_up, tried)).unwrap_or(false)
    }

    fn try_this(&mut self, look_up: impl Fn(&CStr) -> *mut c_void, tried: &mut impl FnMut() -> bool) -> bool {
        let mark = look_up(MARK) as usize;
        if mark == 0 || self.marks.iter().take(self.count).any(|m| *m == mark) {
            return false;
        }
        let Some(place) = self.marks.get_mut(self.count) else { return false };
        *place = mark;
        self.count += 1;
        API.load(look_up);
        tried()
    }
}

/// What the paths of all loaded libraries show.
fn loaded() -> Loaded {
    unsafe extern "C" fn step(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        data: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the dynamic loader's own description, and the variable below.
        let (name, loaded): (*const c_char, _) = unsafe { ((*info).dlpi_name, &mut *data.cast::<Loaded>()) };
        if !name.is_null() {
            // SAFETY: the NUL-terminated path of a loaded library.
            loaded.see(unsafe { CStr::from_ptr(name) }.to_bytes());
        }
        0
    }
    let mut loaded = Loaded::new();
    // SAFETY: `step` is called only while `loaded` lives.
    unsafe { libc::dl_iterate_phdr(Some(step), (&raw mut loaded).cast()) };
    loaded
}
