internal import Glibc

/// Splits received bytes into complete requests. It has no socket and no clock.
struct RequestReader: ~Copyable {
    enum Step {
        /// More bytes are needed.
        case incomplete
        /// The client sent `Expect: 100-continue` and waits. Returned once per request.
        case expectsContinue
        case request(RequestHead, body: [UInt8])
        /// With this status. The bytes after it cannot be split into requests any more.
        case refusal(Int)
    }

    /// The part of a request that is being received.
    enum Stage { case none, head, body }

    private let limits: ServerLimits
    private let cache: HeadCache?
    private var buffer: ReceiveBuffer?
    /// Bytes of the buffer that were already searched for the end of the head.
    private var searched = 0
    /// A parsed head whose body is incomplete.
    private var head: RequestHead?
    private var didSendContinue = false

    init(limits: ServerLimits, cache: HeadCache? = nil) {
        self.limits = limits
        self.cache = cache
    }

    /// Received but not consumed yet.
    var waitingBytes: Int {
        switch buffer {
        case .some(let buffer): buffer.count
        case .none: 0
        }
    }

    /// Bytes of memory that it holds.
    var capacity: Int {
        switch buffer {
        case .some(let buffer): buffer.capacity
        case .none: 0
        }
    }

    var stage: Stage { head != nil ? .body : waitingBytes == 0 ? .none : .head }

    /// `body` writes received bytes into the given memory and returns how many it wrote, or a negative number. Returns
    /// that, and whether the memory was filled. A reader without a buffer takes the spare one, or allocates one.
    mutating func receive(
        spare: inout ReceiveBuffer?, _ body: (UnsafeMutableRawBufferPointer) -> Int
    ) -> (count: Int, isFull: Bool) {
        var taken = buffer.take() ?? spare.take() ?? ReceiveBuffer()
        let result = unsafe taken.receive(body)
        buffer = consume taken
        return result
    }

    /// An idle connection holds no memory. A buffer that has grown is freed.
    mutating func release(to spare: inout ReceiveBuffer?) {
        guard waitingBytes == 0, let taken = buffer.take() else { return }
        if taken.capacity == ReceiveBuffer.usual { spare = consume taken }
    }

    mutating func discard() {
        if var taken = buffer.take() {
            taken.consume(taken.count)
            buffer = consume taken
        }
        head = nil
        searched = 0
    }

    /// After ``Step/refusal(_:)`` it must not be called again.
    mutating func next() -> Step {
        if head == nil {
            do throws(HeadError) {
                guard let found = try takeHead() else { return .incomplete }
                try judge(found)
                // A request without a body is complete.
                if found.contentLength == 0 { return .request(found, body: []) }
                head = found
                didSendContinue = false
            } catch {
                return .refusal(error.status)
            }
        }
        guard let head else { return .incomplete }
        guard waitingBytes >= head.contentLength else {
            guard head.expectation == .toContinue, head.isCurrent, !didSendContinue else { return .incomplete }
            didSendContinue = true
            return .expectsContinue
        }
        self.head = nil
        return .request(head, body: buffer?.take(head.contentLength) ?? [])
    }

    /// Rejects well-formed heads that are not supported: transfer codings, unknown expectations, too large bodies, and
    /// on a single-request listener `Expect` and `Upgrade`.
    private func judge(_ head: RequestHead) throws(HeadError) {
        guard !head.hasTransferEncoding, head.expectation != .unknown else { throw .malformed }
        if limits.isSingleRequest {
            guard head.expectation == .none, !head.hasUpgrade else { throw .malformed }
        }
        guard head.contentLength <= limits.maxBody else { throw .tooLarge }
    }

    fileprivate enum Search {
        case found(RequestHead, length: Int)
        case unfinished(searched: Int)
        case failed(HeadError)
    }

    /// Nil if the head is incomplete.
    private mutating func takeHead() throws(HeadError) -> RequestHead? {
        guard waitingBytes > 0 else { return nil }
        let (start, limits, cache) = (searched, limits, cache)
        let search = buffer?.withBytes { bytes in RequestReader.search(bytes, from: start, limits.maxHead, cache) }
        switch search {
        case .found(let head, let length):
            buffer?.consume(length)
            searched = 0
            return head
        case .unfinished(let count):
            searched = count
            return nil
        case .failed(let error): throw error
        case nil: return nil
        }
    }

    fileprivate static func search(_ bytes: Span<UInt8>, from start: Int, _ longest: Int, _ cache: HeadCache?) -> Search
    {
        if start == 0, let known = cache?.find(bytes), known.length <= longest {
            return .found(known.head, length: known.length)
        }
        guard let end = headEnd(bytes, from: start), end <= longest else {
            return bytes.count <= longest ? .unfinished(searched: bytes.count) : .failed(.tooManyFields)
        }
        do throws(HeadError) {
            let own = bytes.extracting(0..<end)
            let head = try RequestHead(parsing: own)
            cache?.propose(head, own)
            return .found(head, length: end)
        } catch {
            return .failed(error)
        }
    }

    /// The index after the empty line, or after the first byte that a head must not contain: an invalid head without an
    /// end would otherwise be rejected only at the deadline.
    private static func headEnd(_ bytes: Span<UInt8>, from start: Int) -> Int? {
        var previous = start > 0 ? bytes[start - 1] : 0
        for index in start..<bytes.count {
            let byte = bytes[index]
            if byte == 0x0A {
                let isEmptyLine = index < 2 ? true : bytes[index - 2] == 0x0A
                if previous != 0x0D || isEmptyLine { return index + 1 }
            } else if previous == 0x0D || byte == 0x7F || (byte < 0x20 && byte != 0x0D && byte != 0x09) {
                return index + 1
            }
            previous = byte
        }
        return nil
    }
}

extension RequestHead {
    /// Reads a head from the beginning of the bytes, for who reads the body in pieces. Returns it with its length; nil if it
    /// is not whole.
    ///
    /// - Parameters:
    ///   - searched: how many bytes were there at the last call, 0 at the first.
    ///   - longest: in bytes.
    static func read(
        _ bytes: [UInt8], searched: inout Int, longest: Int
    ) throws(HeadError) -> (head: RequestHead, length: Int)? {
        switch RequestReader.search(bytes.span, from: searched, longest, nil) {
        case .found(let head, let length):
            searched = 0
            return (head, length)
        case .unfinished(let count):
            searched = count
            return nil
        case .failed(let error): throw error
        }
    }
}

extension HeadError {
    static let tooLarge = HeadError(status: 413)
}

/// Memory into which a connection's bytes are received. Consumed bytes are zeroed, so that no request stays in the
/// memory of an open connection or in a buffer that is used again.
@safe struct ReceiveBuffer: ~Copyable {
    /// In bytes.
    static let usual = 4_096
    private var memory: UnsafeMutableRawPointer
    private(set) var capacity = usual
    private var start = 0
    private var end = 0

    init() {
        unsafe memory = ReceiveBuffer.zeros(ReceiveBuffer.usual)
    }

    deinit {
        unsafe explicit_bzero(memory.advanced(by: start), end - start)
        unsafe memory.deallocate()
    }

    /// Received but not consumed.
    var count: Int { end - start }

    /// `body` returns how many bytes it wrote, or a negative number. Returns that, and whether the room is full.
    mutating func receive(_ body: (UnsafeMutableRawBufferPointer) -> Int) -> (count: Int, isFull: Bool) {
        if end == capacity { makeRoom() }
        let room = unsafe UnsafeMutableRawBufferPointer(start: memory.advanced(by: end), count: capacity - end)
        let written = unsafe body(room)
        end += min(max(written, 0), capacity - end)
        return (written, end == capacity)
    }

    /// Moves the bytes to the front, or to memory of twice the size if they fill more than half of it.
    private mutating func makeRoom() {
        let count = count
        if count <= capacity / 2 {
            unsafe memory.copyMemory(from: memory.advanced(by: start), byteCount: count)
            // Zero the bytes at their former place.
            let former = max(start, count)
            unsafe explicit_bzero(memory.advanced(by: former), end - former)
        } else {
            let larger = unsafe ReceiveBuffer.zeros(capacity * 2)
            unsafe larger.copyMemory(from: memory.advanced(by: start), byteCount: count)
            unsafe explicit_bzero(memory.advanced(by: start), count)
            unsafe memory.deallocate()
            unsafe memory = larger
            capacity *= 2
        }
        (start, end) = (0, count)
    }

    func withBytes<Value>(_ body: (Span<UInt8>) -> Value) -> Value {
        let bytes = unsafe UnsafeRawBufferPointer(start: memory.advanced(by: start), count: count)
        return unsafe body(Span<UInt8>(_bytes: RawSpan(_unsafeBytes: bytes)))
    }

    /// Consumes at most `most` bytes.
    mutating func take(_ most: Int) -> [UInt8] {
        let count = min(most, count)
        let bytes = unsafe Array(UnsafeRawBufferPointer(start: memory.advanced(by: start), count: count))
        consume(count)
        return bytes
    }

    mutating func consume(_ most: Int) {
        let count = min(most, count)
        unsafe explicit_bzero(memory.advanced(by: start), count)
        start += count
        if start == end { (start, end) = (0, 0) }
    }

    /// All of the memory is zero, except the bytes that are not consumed.
    var isErased: Bool {
        let whole = unsafe UnsafeRawBufferPointer(start: memory, count: capacity)
        return (0..<capacity).allSatisfy { index in unsafe (start..<end).contains(index) || whole[index] == 0 }
    }

    private static func zeros(_ count: Int) -> UnsafeMutableRawPointer {
        let memory = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 16)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: count)
        return unsafe memory
    }
}
