internal import RingbackBase

/// Parses a stream of server-sent events (WHATWG HTML section 9.2) as its bytes arrive.
package struct ServerSentEvents {
    package struct Event: Sendable, Equatable {
        package var id: String?
        package var name = "message"
        package var bytes: [UInt8]
        /// The bytes have no line break inside.
        package var isOneLine: Bool
        package var data: String { String(decoding: bytes, as: UTF8.self) }
    }

    /// The id of the last event that has ended, also of one without data: where a stream that broke is resumed.
    package private(set) var lastID: String?
    /// The milliseconds that the server last asked clients to wait before they connect again.
    package private(set) var retry: Int?
    /// Bytes of one line, or of one event's data: a server that sends more is broken.
    private let limit: Int
    private var line: [UInt8] = []
    private var skipsNewline = false
    private var isFirstLine = true
    private var id: String?
    private var name = ""
    private var data: [UInt8] = []
    private var lines = 0
    /// Data of one line end with a line feed, so that they can be written without a copy.
    private let endsWithLineFeed: Bool
    /// Bytes of the event that has begun.
    package var held: Int { line.count + data.count + name.utf8.count + (id?.utf8.count ?? 0) }

    package init(limit: Int = 1 << 20, endsWithLineFeed: Bool = false) {
        self.limit = limit
        self.endsWithLineFeed = endsWithLineFeed
    }

    /// Takes bytes and returns the events that they completed. Throws `bad_response` for an event without end.
    package mutating func append(_ bytes: [UInt8]) throws(RingbackError) -> [Event] { try append(bytes[...]) }

    package mutating func append(_ bytes: ArraySlice<UInt8>) throws(RingbackError) -> [Event] {
        var events: [Event] = []
        var place = bytes.startIndex
        while place < bytes.endIndex {
            if skipsNewline {
                skipsNewline = false
                if bytes[place] == 10 {
                    place += 1
                    continue
                }
            }
            let end = bytes.startIndex + ByteSearch.lineEnd(in: bytes.span, from: place - bytes.startIndex)
            guard line.count + end - place <= limit else {
                throw RingbackError(.badResponse, "The server sent an event without end.")
            }
            guard end < bytes.endIndex else {
                line += bytes[place...]
                break
            }
            let event: Event?
            if line.isEmpty {
                event = try self.end(bytes[place..<end])
            } else {
                line += bytes[place..<end]
                let whole = line
                line = []
                event = try self.end(whole[...])
            }
            if let event { events.append(event) }
            place = end + 1
            skipsNewline = bytes[end] == 13
        }
        return events
    }

    private mutating func end(_ line: ArraySlice<UInt8>) throws(RingbackError) -> Event? {
        var line = line
        if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
        isFirstLine = false
        guard !line.isEmpty else { return endEvent() }
        try take(line)
        return nil
    }

    private mutating func endEvent() -> Event? {
        lastID = id
        defer {
            name = ""
            data = []
            lines = 0
        }
        guard lines > 0 else { return nil }
        // An event of empty data stays empty.
        if endsWithLineFeed, lines == 1, !data.isEmpty { data.append(10) }
        // What is no UTF-8 is replaced, as the standard says.
        let bytes = ByteSearch.isASCII(data.span) ? data : Array(String(decoding: data, as: UTF8.self).utf8)
        return Event(id: id, name: name.isEmpty ? "message" : name, bytes: bytes, isOneLine: lines == 1)
    }

    /// Compares bytes: as a `Character`, a colon or a space with a combining accent would not be recognized.
    private mutating func take(_ line: ArraySlice<UInt8>) throws(RingbackError) {
        // The longest name of a field that is known has five bytes.
        let colon = line.prefix(6).firstIndex(of: UInt8(ascii: ":"))
        guard colon != nil || line.count <= 5 else { return }
        var bytes = colon.map { line[($0 + 1)...] } ?? []
        if bytes.first == UInt8(ascii: " ") { bytes = bytes.dropFirst() }
        switch String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self) {
        case "data":
            if lines > 0 { data.append(10) }
            guard data.count + bytes.count <= limit else {
                throw RingbackError(.badResponse, "The server sent an event without end.")
            }
            if data.isEmpty { data.reserveCapacity(bytes.count + 1) }
            data += bytes
            lines += 1
        // The id is sent back to the server in a header field, and also holds for later events without one.
        case "id": if !bytes.contains(0) { id = String(decoding: bytes, as: UTF8.self) }
        case "event": name = String(decoding: bytes, as: UTF8.self)
        case "retry":
            if !bytes.isEmpty, bytes.allSatisfy({ (0x30...0x39).contains($0) }) {
                retry = Int(String(decoding: bytes, as: UTF8.self)) ?? retry
            }
        default: break
        }
    }
}

extension ServerSentEvents.Event {
    package init(id: String? = nil, name: String = "message", data: String = "") {
        self.init(id: id, name: name, bytes: Array(data.utf8), isOneLine: !data.utf8.contains(10))
    }
}

/// What a stream of the daemon's events is made of: how one connection is read, and which errors end the stream.
protocol EventSource: Sendable {
    associatedtype Element: Sendable

    /// Reads one connection until it breaks, and is called again then. `hasConnected` is called when the daemon has
    /// answered: the next pause is the shortest again. Returns true if the stream is over for good.
    mutating func follow(
        _ interruption: Interruption, hasConnected: () -> Void, _ deliver: (Element) -> Void
    ) throws(RingbackError) -> Bool

    /// The errors that another connection does not mend: the consumer gets them.
    static var finalErrors: [RingbackError.Kind] { get }
}

/// Follows a stream of events on a thread of its own, and connects again after every break.
struct EventPump<Source: EventSource>: Sendable {
    let source: Source
    let interruption: Interruption
    /// The first pause before connecting again; doubles with each failure, up to ``longestPause``.
    var pause: Duration = .milliseconds(200)
    var longestPause: Duration = .seconds(10)

    func run(_ deliver: (Result<Source.Element, RingbackError>) -> Void) {
        var source = source
        var failures = 0
        while !interruption.isInterrupted {
            do throws(RingbackError) {
                let isOver = try source.follow(interruption, hasConnected: { failures = 0 }) { element in
                    if !interruption.isInterrupted { deliver(.success(element)) }
                }
                if isOver { return }
            } catch {
                // A consumer that has gone is told nothing.
                if error.kind == .cancelled || interruption.isInterrupted { return }
                if Source.finalErrors.contains(error.kind) { return deliver(.failure(error)) }
            }
            // Half of the pause is random, or every app on the machine would connect in the same instant.
            let longest = min(longestPause, pause * (1 << min(failures, 10)))
            failures += 1
            if interruption.wait(atMost: longest * Double.random(in: 0.5...1)) { return }
        }
    }
}

/// Gives events to one consumer; ends its connection when the consumer goes.
public struct BrokerEventIterator<Element: Sendable>: AsyncIteratorProtocol {
    private var base: AsyncStream<Result<Element, RingbackError>>.Iterator

    /// - Parameter backlog: a consumer this many elements behind loses the oldest.
    init<Source: EventSource>(of source: Source, backlog: Int) where Source.Element == Element {
        let (stream, continuation) = AsyncStream<Result<Element, RingbackError>>.makeStream(
            bufferingPolicy: .bufferingNewest(backlog))
        base = stream.makeAsyncIterator()
        let interruption: Interruption
        do throws(RingbackError) { interruption = try Interruption() } catch {
            continuation.yield(.failure(error))
            continuation.finish()
            return
        }
        continuation.onTermination = { _ in interruption.interrupt() }
        let failure = Blocking.start {
            let pump = EventPump(source: source, interruption: interruption)
            pump.run { continuation.yield($0) }
            continuation.finish()
        }
        if failure != 0 {
            continuation.yield(.failure(.system("pthread_create", failure)))
            continuation.finish()
        }
    }

    public mutating func next() async throws(RingbackError) -> Element? { try await base.next()?.get() }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws(RingbackError) -> Element? {
        try await base.next(isolation: actor)?.get()
    }
}
