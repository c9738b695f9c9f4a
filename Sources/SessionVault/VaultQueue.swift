internal import Dispatch

/// Runs an actor's jobs one after another on a queue of its own: fsync blocks for as long as the disk likes, and the
/// shared pool has one thread a core.
final class VaultQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "ringback.vault")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
