/// The framing of messages between daemon and helper: four bytes of length, big-endian, then that many bytes.
///
/// A length above the reader's limit ends the connection, so that neither process can make the other use unlimited
/// memory.
struct FrameReader {
    /// The announced length exceeds the limit.
    struct TooLong: Error {}

    private let limit: Int
    private var bytes: [UInt8] = []

    init(limit: Int) {
        self.limit = limit
    }

    mutating func append(_ received: some Sequence<UInt8>) {
        bytes.append(contentsOf: received)
    }

    /// The next complete frame; nil if it is incomplete. The bytes that were taken are zeroed in the buffer, because
    /// they may be a secret.
    mutating func next() throws(TooLong) -> [UInt8]? {
        guard bytes.count >= 4 else { return nil }
        let length = bytes[0..<4].reduce(0) { $0 << 8 | Int($1) }
        guard length <= limit else { throw TooLong() }
        guard bytes.count >= 4 + length else { return nil }
        let frame = Array(bytes[4..<(4 + length)])
        let rest = Array(bytes[(4 + length)...])
        erase(&bytes)
        bytes = rest
        return frame
    }
}

/// Appends a frame to the output.
func appendFrame(_ content: some Collection<UInt8>, to output: inout [UInt8]) {
    let length = UInt32(content.count)
    output.append(contentsOf: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) })
    output.append(contentsOf: content)
}
