internal import Dispatch

/// Runs an actor's jobs on a queue of its own, because `fsync` may block for long, and Swift's cooperative pool has
/// only one thread for each core.
final class VaultQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "ringback.vault")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
