//! Traces made of traces.
