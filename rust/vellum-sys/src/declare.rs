//! Macros that declare an item of the C interface, and list it for the test that compares it with the header.

macro_rules! constants {
    ($($name:ident = $value:literal;)*) => {
        $(pub const $name: std::os::raw::c_int = $value;)*

        #[doc(hidden)]
        pub fn declared_constants() -> Vec<(&'static str, std::os::raw::c_int)> {
            vec![$((stringify!($name), $name)),*]
        }
    };
}

macro_rules! opaque {
    ($($name:ident;)*) => {
        $(
            /// A handle: only pointers to it exist.
            #[repr(C)]
            pub struct $name {
                _bytes: [u8; 0],
                _not_send_nor_sync: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
            }
        )*

        #[doc(hidden)]
        pub fn declared_opaque() -> Vec<&'static str> {
            vec![$(stringify!($name)),*]
        }
    };
}

macro_rules! functions {
    ($(fn $name:ident($($parameter:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        extern "C" {
            $(pub fn $name($($parameter: $type),*) $(-> $result)?;)*
        }

        #[doc(hidden)]
        pub fn declared_functions() -> Vec<crate::declared::Function> {
            vec![$(crate::declared::Function {
                name: stringify!($name),
                parameters: &[$(stringify!($type)),*],
                result: concat!($(stringify!($result))?),
                address: $name as *const () as usize,
            }),*]
        }
    };
}

macro_rules! callbacks {
    ($(fn $name:ident($($parameter:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        $(pub type $name = Option<unsafe extern "C" fn($($parameter: $type),*) $(-> $result)?>;)*

        #[doc(hidden)]
        pub fn declared_callbacks() -> Vec<crate::declared::Function> {
            vec![$(crate::declared::Function {
                name: stringify!($name),
                parameters: &[$(stringify!($type)),*],
                result: concat!($(stringify!($result))?),
                address: 0,
            }),*]
        }
    };
}

/// `new()` of a struct that begins with its size: that size, and zeros.
macro_rules! new_of_sized {
    ($name:ident, struct_size $($field:ident)*) => {
        impl $name {
            /// The struct with its size set and all else zero, which means the defaults.
            #[must_use]
            pub fn new() -> Self {
                // SAFETY: the fields are integers and raw pointers, for which zeros are valid.
                let mut zero: Self = unsafe { std::mem::zeroed() };
                zero.struct_size = std::mem::size_of::<Self>();
                zero
            }
        }
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    ($name:ident, $($field:ident)*) => {};
}

macro_rules! structs {
    ($(struct $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                $(pub $field: $type,)*
            }
            new_of_sized!($name, $($field)*);
        )*

        #[doc(hidden)]
        pub fn declared_structs() -> Vec<crate::declared::Struct> {
            vec![$({
                let memory = std::mem::MaybeUninit::<$name>::uninit();
                let start = memory.as_ptr();
                crate::declared::Struct {
                    name: stringify!($name),
                    size: std::mem::size_of::<$name>(),
                    fields: vec![$((
                        stringify!($field),
                        stringify!($type),
                        // SAFETY: `addr_of!` reads nothing, and the field lies in `memory`.
                        unsafe { std::ptr::addr_of!((*start).$field) } as usize - start as usize,
                    )),*],
                }
            }),*]
        }
    };
}
