internal import Glibc
internal import NIOCore

/// What has come over a connection, on its way to become requests: one after the other, each whole. Pure: it knows no
/// socket and no clock.
struct RequestReader {
    /// What the bytes so far amount to.
    enum Step {
        /// More are needed.
        case incomplete
        /// The client holds its body back until it is told to send it. Said once per request.
        case holdsBodyBack
        case request(RequestHead, body: [UInt8])
        /// The request is refused with this status, and nothing behind it can be told apart any more.
        case refusal(Int)
    }

    /// How far a request has come.
    enum Stage { case none, head, body }

    private let limits: ServerLimits
    private(set) var buffer: ByteBuffer?
    /// The connection reads into the buffer's memory again, and keeps it until then.
    private var isShared = false
    /// How much of the buffer was searched for the head's end.
    private var searched = 0
    /// A head whose body is still coming.
    private var head: RequestHead?
    private var wasToldToContinue = false

    init(limits: ServerLimits) {
        self.limits = limits
    }

    /// Bytes that belong to no request yet.
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
        // Else a client that always sends ahead would make the buffer grow for as long as it is connected.
        if waiting.readerIndex > 8_192 { waiting.discardReadBytes() }
        waiting.writeImmutableBuffer(received)
        received.erase(received.readableBytes)
        buffer = waiting
    }

    /// The next step. After ``Step/refusal(_:)`` there is none.
    mutating func next() -> Step {
        if head == nil {
            do throws(HeadRefusal) {
                guard let found = try takeHead() else { return .incomplete }
                try judge(found)
                head = found
                wasToldToContinue = false
            } catch {
                return .refusal(error.status)
            }
        }
        guard let head else { return .incomplete }
        guard let body = take(head.contentLength) else {
            guard head.expectation == .toContinue, head.isCurrent, !wasToldToContinue else { return .incomplete }
            wasToldToContinue = true
            return .holdsBodyBack
        }
        self.head = nil
        return .request(head, body: body)
    }

    /// What a well-formed head may still not ask for.
    private func judge(_ head: RequestHead) throws(HeadRefusal) {
        guard !head.hasTransferEncoding, head.expectation != .unknown else { throw .malformed }
        if limits.isSingleRequest {
            guard head.expectation == .none, !head.hasUpgrade else { throw .malformed }
        }
        guard head.contentLength <= limits.maxBody else { throw .tooLarge }
    }

    /// The next head, if it is whole.
    private mutating func takeHead() throws(HeadRefusal) -> RequestHead? {
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
            return Result { () throws(HeadRefusal) in try RequestHead(parsing: head) }
        }
        skip(end)
        return try parsed.get()
    }

    /// The next bytes, if so many have come.
    private mutating func take(_ count: Int) -> [UInt8]? {
        guard count > 0 else { return [] }
        guard let bytes = buffer?.getBytes(at: buffer?.readerIndex ?? 0, length: count) else { return nil }
        skip(count)
        return bytes
    }

    private mutating func skip(_ count: Int) {
        buffer?.erase(count)
        buffer?.moveReaderIndex(forwardBy: count)
        // An idle connection holds no memory, and the buffer can be read into again.
        if buffer?.readableBytes == 0 { buffer = nil }
    }

    /// The index behind the empty line, or behind a byte that no head may have: the parser refuses that one, sooner
    /// than a client that never sends a proper end would be noticed.
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
    /// Zeroes the next bytes, for all who have them: what a request carried does not rest in a connection that stays open.
    fileprivate func erase(_ count: Int) {
        unsafe withUnsafeReadableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe explicit_bzero(UnsafeMutableRawPointer(mutating: start), min(count, bytes.count))
        }
    }
}

extension HeadRefusal {
    static let tooLarge = HeadRefusal(status: 413)
}
