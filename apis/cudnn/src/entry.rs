//! The way in: how cuDNN's library is recognised.
//!
//! Programs are linked to `libcudnn.so.9`, which has all functions, and passes each on to the part that it opens:
//! `libcudnn_graph`, `libcudnn_ops`, `libcudnn_cnn`, `libcudnn_adv` (of cuDNN 8 `libcudnn_ops_infer` and others), which export
//! the same names and call each other by them. So that one is what is traced, and the parts only where a program is linked
//! to them alone.

use hetrace_interpose::library;
use hetrace_interpose::library::Traits;

use crate::generated::tables::NAMES;

library! {
    // CUDNN_STATUS_NOT_SUPPORTED of cuDNN 9; 8 has no such number
    NAMES, parts: ["libcudnn_"], absent: 3000, Traits {
        title: "cuDNN",
        // What all parts need has it, too: `libcudnn_graph`, and `libcudnn_ops_infer` of cuDNN 8.
        signature: c"cudnnGetVersion",
        sonames: &["libcudnn"],
        begins: |name| name.starts_with(b"cudnn"),
        beside: |_| None,
        versioned: true,
        several: true,
        version: None,
        // The driver's own parts, and the tools that look into it.
        spared: &["libnvidia-", "libcudadebugger", "libnvcuvid", "libnvoptix", "libcupti"],
        sparing: &[c"cuptiActivityEnable"],
        loader: None,
    }
}
