/// The processes of the last clients, each held by a descriptor. A process that connects again needs no new descriptor. Used
/// on the loop's thread only.
///
/// Race: the number of a process may be another process's later. An entry therefore counts only for connections that its
/// listener accepted after the one that it was made for, and only if its process is still alive when the entry is used:
/// whoever needs the process calls ``PeerProcess/isAlive`` after everything that it reads about it. The kernel hands a
/// listener's connections out in the order in which they were made, so the number was this process's when they were made.
/// An entry whose process has ended is dropped when it is found, at the latest a second after the process was last seen.
struct KnownProcesses {
    private struct Entry {
        let number: Int32
        /// The listener and the age of the connection that it was made for.
        let listener: UInt64
        let age: UInt64
        var process: PeerProcess
        /// When the process was last seen alive, in the loop's time (ns).
        var seen: Int64
    }

    /// Each takes a descriptor.
    private static let most = 8
    /// How long a process is not looked at again, in ns.
    private static let interval: Int64 = 1_000_000_000

    private var entries: [Entry] = []
    /// The place of the next new entry.
    private var turn = 0

    /// The process with this number at the other end of a listener's connection of this age, if it is known. It may have
    /// ended within the last second.
    mutating func find(_ number: Int32, at listener: UInt64, age: UInt64, now: Int64) -> PeerProcess? {
        guard let index = entries.firstIndex(where: { $0.number == number && $0.listener == listener }) else {
            return nil
        }
        if now - entries[index].seen >= KnownProcesses.interval {
            guard entries[index].process.isAlive else {
                entries.remove(at: index)
                return nil
            }
            entries[index].seen = now
        }
        return entries[index].age < age ? entries[index].process : nil
    }

    /// Keeps what ``find(_:at:age:now:)`` did not find.
    mutating func keep(_ process: PeerProcess, _ number: Int32, at listener: UInt64, age: UInt64, now: Int64) {
        // Processes that this one cannot see all have the number 0.
        guard number > 0, !entries.contains(where: { $0.number == number && $0.listener == listener }) else { return }
        let entry = Entry(number: number, listener: listener, age: age, process: process, seen: now)
        if entries.count < KnownProcesses.most {
            entries.append(entry)
        } else {
            entries[turn] = entry
            turn = (turn + 1) % KnownProcesses.most
        }
    }

    /// Closes the descriptors that nothing else uses. False if there is none.
    mutating func giveUp() -> Bool {
        let count = entries.count
        var inUse: [Entry] = []
        for index in entries.indices where !isKnownUniquelyReferenced(&entries[index].process) {
            inUse.append(entries[index])
        }
        entries = inUse
        return inUse.count < count
    }
}
