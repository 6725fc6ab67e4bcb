//! Rows of what is there: devices and their telemetry, functions, threads, ….

use std::fmt::Write;
use std::ops::ControlFlow;

use hetrace_trace::demangle;
use hetrace_trace::spans::Summary;
use hetrace_trace::telemetry::{Monitored, Quantity, Sample, Telemetry};
use hetrace_trace::trace::{Device, DeviceClock, FunctionId, Process, ThreadLosses};

use super::super::batch::Cell;
use super::super::json;
use super::super::tables::{DEVICES, ERRORS, FUNCTIONS, KERNELS, PROCESSES, QUEUES, TELEMETRY, THREADS};
use super::{Rows, Step};

impl Rows<'_, '_> {
    pub(super) fn names(&mut self, summary: &Summary) -> Step {
        self.functions()?;
        self.devices()?;
        self.queues()?;
        self.kernels()?;
        self.errors()?;
        self.people(summary)?;
        let telemetry = Telemetry::read(self.trace);
        for device in telemetry.devices() {
            for series in &device.series {
                for sample in &series.samples {
                    self.sample(device, series.quantity, sample)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn functions(&mut self) -> Step {
        let trace = self.trace;
        for (function, number) in trace.functions().all().iter().zip(0u32..) {
            let roles = trace.described(FunctionId(number)).map(|f| f.roles.join(" "));
            let api = trace.functions().apis().get(function.api);
            let cells: [Cell<'_>; FUNCTIONS.columns.len()] = [
                api.map_or("", String::as_str).into(),
                function.name.as_str().into(),
                function.index.is_some().into(),
                function.enqueues.into(),
                Cell::text(roles.as_deref().unwrap_or("")),
            ];
            self.sheets.push(&FUNCTIONS, &cells)?;
        }
        ControlFlow::Continue(())
    }

    fn devices(&mut self) -> Step {
        let trace = self.trace;
        for device in trace.names().devices() {
            let mut properties = String::new();
            for (at, (name, value)) in device.properties.iter().enumerate() {
                properties.push(if at == 0 { '{' } else { ',' });
                json::write_text(&mut properties, name);
                let _ = write!(properties, ":{value}");
            }
            if !properties.is_empty() {
                properties.push('}');
            }
            let cells: [Cell<'_>; DEVICES.columns.len()] = [
                device.id.into(),
                device.pid.into(),
                device.handle.into(),
                device.ordinal.into(),
                Cell::text(&device.name),
                Cell::text(&device.uuid),
                Cell::number(device.compute_units),
                Cell::number(device.clock_khz),
                Cell::number(device.memory_khz),
                Cell::number(device.bus_bits),
                Cell::number(device.memory_bytes),
                Cell::text(&properties),
                self.clock_error(device).into(),
                Cell::text(&device.api),
            ];
            self.sheets.push(&DEVICES, &cells)?;
        }
        ControlFlow::Continue(())
    }

    fn clock_error(&self, device: &Device) -> Option<f64> {
        let clocks = &self.trace.manifest().device_clocks;
        let is_its = |c: &&DeviceClock| (c.pid, c.handle) == (device.pid, device.handle);
        // Older traces do not say of which API a device or a clock is.
        let of_api = |c: &&DeviceClock| c.api.is_empty() || device.api.is_empty() || c.api == device.api;
        clocks.iter().find(|c| is_its(c) && of_api(c))?.error_ns.map(|ns| ns as f64)
    }

    fn queues(&mut self) -> Step {
        let names = self.trace.names();
        for queue in names.queues() {
            let called = self.ranges.queue_name(queue.pid, queue.id, queue.handle);
            let device = names.device(queue.device);
            let cells: [Cell<'_>; QUEUES.columns.len()] = [
                queue.id.into(),
                queue.pid.into(),
                queue.handle.into(),
                queue.context.into(),
                queue.device.into(),
                device.map_or(Cell::Null, |d| Cell::text(&d.name)),
                Cell::text(&queue.api),
                queue.properties.into(),
                queue.priority.into(),
                Cell::number(queue.number),
                called.into(),
            ];
            self.sheets.push(&QUEUES, &cells)?;
        }
        ControlFlow::Continue(())
    }

    fn kernels(&mut self) -> Step {
        let names = self.trace.names();
        for kernel in names.kernels() {
            let name = demangle::full(&kernel.name);
            let launches = names.launches(kernel.id);
            let cells: [Cell<'_>; KERNELS.columns.len()] = [
                kernel.id.into(),
                kernel.pid.into(),
                kernel.name.as_str().into(),
                (&*name).into(),
                Cell::number(kernel.registers),
                Cell::number(kernel.shared),
                Cell::number(kernel.local),
                Cell::number(kernel.constant),
                Cell::number(kernel.max_threads),
                launches.map(|all| all.launches).into(),
                launches.map(|all| all.timed).into(),
                launches.map(|all| all.bytes).filter(|bytes| *bytes > 0).into(),
            ];
            self.sheets.push(&KERNELS, &cells)?;
        }
        ControlFlow::Continue(())
    }

    fn errors(&mut self) -> Step {
        for ((api, code), text) in std::mem::take(&mut self.error_texts) {
            let cells: [Cell<'_>; ERRORS.columns.len()] =
                [api.as_str().into(), code.into(), text.as_deref().into()];
            self.sheets.push(&ERRORS, &cells)?;
        }
        ControlFlow::Continue(())
    }

    /// Threads and processes.
    fn people(&mut self, summary: &Summary) -> Step {
        let manifest = self.trace.manifest();
        for thread in &summary.threads {
            let mine = |l: &&ThreadLosses| (l.pid, l.tid) == (thread.pid, thread.tid);
            let lost = manifest.losses.threads.iter().filter(mine);
            let add = |(a, b): (u64, u64), (c, d): (u64, u64)| (a.saturating_add(c), b.saturating_add(d));
            let (records, calls) = lost.map(|l| (l.records, l.calls)).fold((0, 0), add);
            let called = self.ranges.thread_name(thread.pid, thread.tid);
            let cells: [Cell<'_>; THREADS.columns.len()] = [
                thread.pid.into(),
                thread.tid.into(),
                Cell::text(&thread.name),
                called.into(),
                records.into(),
                calls.into(),
            ];
            self.sheets.push(&THREADS, &cells)?;
        }
        let mut pids: Vec<i64> = manifest.processes.iter().map(|p| p.pid).collect();
        pids.extend(summary.threads.iter().map(|t| t.pid));
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            let known = manifest.processes.iter().find(|p| p.pid == pid);
            let (rank, line) = (self.job.rank_of(pid), known.map(Process::line));
            let cells: [Cell<'_>; PROCESSES.columns.len()] = [
                pid.into(),
                known.and_then(|p| p.parent).into(),
                line.as_deref().map_or(Cell::Null, Cell::text),
                self.job_rank(pid).into(),
                rank.and_then(|rank| rank.size).into(),
                rank.and_then(|rank| rank.local).into(),
            ];
            self.sheets.push(&PROCESSES, &cells)?;
        }
        ControlFlow::Continue(())
    }

    fn sample(&mut self, device: &Monitored, quantity: Quantity, sample: &Sample) -> Step {
        for (field, value) in quantity.fields().iter().zip(sample.values) {
            let reasons = device.reasons.get(&value).map(String::as_str);
            let text = if quantity == Quantity::Throttle { reasons } else { None };
            let cells: [Cell<'_>; TELEMETRY.columns.len()] = [
                device.number.into(),
                device.index.into(),
                Cell::text(&device.name),
                Cell::text(&device.uuid),
                Cell::text(&device.source),
                quantity.name().into(),
                (*field).into(),
                Cell::text(quantity.unit()),
                self.clock.of(sample.time).into(),
                value.into(),
                text.into(),
                Cell::number(sample.took),
            ];
            self.sheets.push(&TELEMETRY, &cells)?;
        }
        ControlFlow::Continue(())
    }
}
