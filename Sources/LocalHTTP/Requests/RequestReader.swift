internal import Glibc
internal import NIOCore

/// Splits the bytes that arrive over a connection into complete requests. It has no socket and no clock.
struct RequestReader {
    /// The result of reading the bytes so far.
    enum Step {
        /// More are needed.
        case incomplete
        /// The client sent `Expect: 100-continue` and waits before it sends the body. Returned once per request.
        case expectsContinue
        case request(RequestHead, body: [UInt8])
        /// The request is rejected with this status. The bytes after it cannot be split into requests any more.
        case refusal(Int)
    }

    /// Which part of a request is being received.
    enum Stage { case none, head, body }

    private let limits: ServerLimits
    private(set) var buffer: ByteBuffer?
    /// The connection reads into the buffer's memory again, and keeps it until then.
    private var isShared = false
    /// How many bytes of the buffer were already searched for the end of the head.
    private var searched = 0
    /// A parsed head whose body is incomplete.
    private var head: RequestHead?
    private var didSendContinue = false

    init(limits: ServerLimits) {
        self.limits = limits
    }

    /// The number of bytes that are received but not consumed yet.
    var waitingBytes: Int { buffer?.readableBytes ?? 0 }

    var stage: Stage { head != nil ? .body : buffer == nil ? .none : .head }

    mutating func append(_ received: ByteBuffer) {
        guard var waiting = buffer.take() else {
            buffer = received
            isShared = true
            return
        }
        if isShared {
            let former = waiting
            waiting = ByteBuffer()
            waiting.reserveCapacity(former.readableBytes + received.readableBytes)
            waiting.writeImmutableBuffer(former)
            former.erase(former.readableBytes)
            isShared = false
        }
        // Without this, the buffer of a client that always sends ahead would grow as long as it is connected.
        if waiting.readerIndex > 8_192 { waiting.discardReadBytes() }
        waiting.writeImmutableBuffer(received)
        received.erase(received.readableBytes)
        buffer = waiting
    }

    /// The next step. After ``Step/refusal(_:)`` it must not be called again.
    mutating func next() -> Step {
        if head == nil {
            do throws(HeadError) {
                guard let found = try takeHead() else { return .incomplete }
                try judge(found)
                head = found
                didSendContinue = false
            } catch {
                return .refusal(error.status)
            }
        }
        guard let head else { return .incomplete }
        guard let body = take(head.contentLength) else {
            guard head.expectation == .toContinue, head.isCurrent, !didSendContinue else { return .incomplete }
            didSendContinue = true
            return .expectsContinue
        }
        self.head = nil
        return .request(head, body: body)
    }

    /// Rejects well-formed heads that this server does not support: transfer codings, unknown expectations, too large
    /// bodies, and on a single-request listener `Expect` and `Upgrade`.
    private func judge(_ head: RequestHead) throws(HeadError) {
        guard !head.hasTransferEncoding, head.expectation != .unknown else { throw .malformed }
        if limits.isSingleRequest {
            guard head.expectation == .none, !head.hasUpgrade else { throw .malformed }
        }
        guard head.contentLength <= limits.maxBody else { throw .tooLarge }
    }

    /// The next head, or nil if it is incomplete.
    private mutating func takeHead() throws(HeadError) -> RequestHead? {
        guard let buffer else { return nil }
        let end = unsafe buffer.withUnsafeReadableBytes { unsafe RequestReader.headEnd($0, from: searched) }
        guard let end, end <= limits.maxHead else {
            searched = buffer.readableBytes
            guard searched <= limits.maxHead else { throw .tooManyFields }
            return nil
        }
        searched = 0
        let parsed = unsafe buffer.withUnsafeReadableBytes { bytes in
            let head = unsafe Span<UInt8>(
                _bytes: RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: bytes[..<end])))
            return Result { () throws(HeadError) in try RequestHead(parsing: head) }
        }
        skip(end)
        return try parsed.get()
    }

    /// The next `count` bytes, or nil if fewer have arrived.
    private mutating func take(_ count: Int) -> [UInt8]? {
        guard count > 0 else { return [] }
        guard let bytes = buffer?.getBytes(at: buffer?.readerIndex ?? 0, length: count) else { return nil }
        skip(count)
        return bytes
    }

    private mutating func skip(_ count: Int) {
        buffer?.erase(count)
        buffer?.moveReaderIndex(forwardBy: count)
        // Frees the memory of an idle connection.
        if buffer?.readableBytes == 0 { buffer = nil }
    }

    /// The index after the empty line, or after the first byte that no head may contain. The parser then rejects that
    /// byte at once; otherwise a client that never ends its head would be noticed only at the deadline.
    private static func headEnd(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var previous = start > 0 ? unsafe bytes[start - 1] : 0
        for index in start..<bytes.count {
            let byte = unsafe bytes[index]
            if byte == 0x0A {
                let isEmptyLine = index < 2 ? true : unsafe bytes[index - 2] == 0x0A
                if previous != 0x0D || isEmptyLine { return index + 1 }
            } else if previous == 0x0D || byte == 0x7F || (byte < 0x20 && byte != 0x0D && byte != 0x09) {
                return index + 1
            }
            previous = byte
        }
        return nil
    }
}

extension ByteBuffer {
    /// Zeroes the next bytes, in every copy of the buffer: no request stays in the memory of a connection that is kept.
    fileprivate func erase(_ count: Int) {
        unsafe withUnsafeReadableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe explicit_bzero(UnsafeMutableRawPointer(mutating: start), min(count, bytes.count))
        }
    }
}

extension HeadError {
    static let tooLarge = HeadError(status: 413)
}
