/// The processes of the last clients, each held by a descriptor. A process that connects again is known by one system call
/// instead of three. Used on the loop's thread only.
///
/// Race: the number of a process may be another process's later. An entry therefore counts only while its process lives, and
/// only for connections that its listener accepted after the one that it was made for. The kernel hands a listener's
/// connections out in the order in which they were made, so the number was this process's when they were made.
struct KnownProcesses {
    private struct Entry {
        let number: Int32
        /// The listener and the age of the connection that it was made for.
        let listener: UInt64
        let age: UInt64
        var process: PeerProcess
    }

    /// Each takes a descriptor.
    private static let most = 8

    private var entries: [Entry] = []
    /// The place of the next new entry.
    private var turn = 0

    /// The process with this number at the other end of a listener's connection of this age, if it is known.
    mutating func find(_ number: Int32, at listener: UInt64, age: UInt64) -> PeerProcess? {
        guard let index = entries.firstIndex(where: { $0.number == number && $0.listener == listener }) else {
            return nil
        }
        guard entries[index].process.isAlive else {
            entries.remove(at: index)
            return nil
        }
        return entries[index].age < age ? entries[index].process : nil
    }

    /// Keeps what ``find(_:at:age:)`` did not find.
    mutating func keep(_ process: PeerProcess, _ number: Int32, at listener: UInt64, age: UInt64) {
        // Processes that this one cannot see all have the number 0.
        guard number > 0, !entries.contains(where: { $0.number == number && $0.listener == listener }) else { return }
        let entry = Entry(number: number, listener: listener, age: age, process: process)
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
