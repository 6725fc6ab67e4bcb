//! Where the bytes of a copy lie, asked of the driver by their address.
//!
//! Names of functions distinguish host from device, but not pinned from pageable, and
//! those of unified copies say nothing.

use super::driver;

const MEMORY_TYPE: i32 = 2;
const IS_MANAGED: i32 = 8;

// Indexes into `MEMORY_KINDS`.
const UNKNOWN: u8 = 0;
const PAGEABLE: u8 = 1;
const PINNED: u8 = 2;
const DEVICE: u8 = 3;
const MANAGED: u8 = 5;
const HOST: u8 = 7;

/// What a copy's name leaves open is asked by its addresses; 0 is no address.
pub fn refine(named: [u8; 2], addresses: [u64; 2]) -> [u8; 2] {
    let [from, to] = named;
    let [there, here] = addresses;
    [one(from, there), one(to, here)]
}

fn one(named: u8, address: u64) -> u8 {
    if address == 0 || !matches!(named, UNKNOWN | HOST) {
        return named;
    }
    let get = |attribute: i32| {
        let mut value = 0u32;
        // SAFETY: both attributes are unsigned numbers; the address is only looked up.
        let error = unsafe { driver::cuPointerGetAttribute((&raw mut value).cast(), attribute, address) };
        (error == 0).then_some(value)
    };
    match get(MEMORY_TYPE) {
        // The driver has never heard of it.
        None => PAGEABLE,
        Some(_) if get(IS_MANAGED).is_some_and(|m| m != 0) => MANAGED,
        Some(1) => PINNED,
        Some(2) => DEVICE,
        Some(_) => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_name_says_is_not_asked() {
        assert_eq!(refine([DEVICE, PINNED], [16, 32]), [DEVICE, PINNED]);
        assert_eq!(refine([UNKNOWN, HOST], [0, 0]), [UNKNOWN, HOST], "no address");
    }

    #[test]
    fn what_the_driver_does_not_know_is_the_programs_own() {
        let here = 0u64;
        let address = std::ptr::from_ref(&here) as u64;
        assert_eq!(refine([HOST, UNKNOWN], [address, address]), [PAGEABLE, PAGEABLE], "there is no driver");
    }
}
