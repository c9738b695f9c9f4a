/// Finds the first event number of a daemon, so that numbers increase from one daemon to the next even if the clock is
/// set back. A file in the state directory stores the last first number.
public enum EventNumbers {
    private static let file = "events"
    /// More numbers than one daemon can use.
    static let room: UInt64 = 1 << 40
    /// The largest number after which a daemon may begin. With the numbers of all its events it stays below 2^53: up to
    /// there a reader that takes numbers for doubles has them exactly.
    static let most: UInt64 = 1 << 52

    /// The first number for a daemon that starts now; `now` is the wall clock in microseconds. If the file cannot be
    /// read or written, only the clock is used.
    public static func next(in directory: String, now: UInt64) -> UInt64 {
        guard let place = try? SyncedDirectory(opening: directory) else { return now }
        let text = (try? place.read(file, atMost: 64)).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
        let written = text.flatMap { UInt64($0.filter { $0 != "\n" }) } ?? 0
        // A larger number was not written by Ringback.
        let last = written <= most ? written : 0
        let first = last > now ? last + room : now
        // Not synced: a power failure may undo the write, but it also ends every program that has seen event numbers. A
        // sync would be the longest part of a start.
        try? place.writeUnsynced(Array("\(first)\n".utf8), as: file)
        return first
    }
}
