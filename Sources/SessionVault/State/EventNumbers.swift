/// Where the numbers of events begin, so that they increase from one daemon to the next even if the clock is set back
/// between them. A file in the state directory has the last beginning.
public enum EventNumbers {
    private static let file = "events"
    /// More than one life of a daemon can use up.
    static let room: UInt64 = 1 << 40

    /// The beginning for a daemon that starts now; `now` is the wall clock in microseconds. What cannot be written or
    /// read is done without: then the clock alone decides.
    public static func next(in directory: String, now: UInt64) -> UInt64 {
        guard let place = try? SyncedDirectory(opening: directory) else { return now }
        let text = (try? place.read(file, atMost: 64)).flatMap { $0 }.map { String(decoding: $0, as: UTF8.self) }
        let written = text.flatMap { UInt64($0.filter { $0 != "\n" }) } ?? 0
        // Numbers beyond this are nobody's beginning, and would soon be too large for readers.
        let last = written < 1 << 59 ? written : 0
        let first = last > now ? last + room : now
        try? place.write(Array("\(first)\n".utf8), as: file)
        return first
    }
}
