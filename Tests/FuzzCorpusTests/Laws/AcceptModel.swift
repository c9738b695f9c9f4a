import Glibc

final class Guest {
    enum State {
        case waiting
        case idle
        case busy
        case blocked
        case gone
    }

    let socket: Int32
    var state = State.waiting
    /// What it has sent before it was accepted.
    var sent: State?

    init(_ socket: Int32) {
        self.socket = socket
    }

    deinit { close(socket) }

    func send(_ path: String) {
        let bytes = Array("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        _ = unsafe Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    private(set) var isClosed = false

    func reads() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 8_192)
        var hasRead = false
        while !isClosed {
            let count = unsafe recv(socket, &buffer, buffer.count, 0)
            if count < 0, errno == EAGAIN { break }
            if count > 0 { hasRead = true } else { isClosed = true }
        }
        return hasRead
    }
}

final class AcceptModel {
    static let places = 5

    /// In the order in which they were accepted.
    var open: [Guest] = []
    var waiting: [Guest] = []
    /// Whose requests wait for an answer, in the order in which they came.
    var busy: [Guest] = []
    /// Who gives way where no descriptor is free, the first one last, as they were when the list was made.
    private var candidates: [(guest: Guest, state: Guest.State)] = []
    private var pausedUntil: Int64?
    private var nextSearch: Int64 = 0
    var limit: Int?
    var errors: [Int32] = []

    func acceptAll(now: Int64) {
        if let until = pausedUntil, now >= until { pausedUntil = nil }
        while pausedUntil == nil, !waiting.isEmpty {
            var error = nextError()
            if error == .noDescriptor { error = freesDescriptor(now: now) ? nextError() : .lasting }
            switch error {
            case nil: accept(waiting.removeFirst())
            case .passing: continue
            // For half a second, or until a connection closes.
            case .noDescriptor, .lasting: pausedUntil = now + 500_000_000
            }
        }
    }

    private enum AcceptError { case passing, noDescriptor, lasting }

    private func nextError() -> AcceptError? {
        guard !errors.isEmpty else { return limit.map { open.count >= $0 } == true ? .noDescriptor : nil }
        switch errors.removeFirst() {
        case ENOMEM, ENFILE: return .noDescriptor
        case EIO: return .lasting
        default: return .passing
        }
    }

    private func accept(_ guest: Guest) {
        if open.count == AcceptModel.places {
            // The oldest idle one gives way; last those that have not read their response.
            guard let oldest = open.first(where: { $0.state == .idle }) ?? open.first(where: { $0.state == .blocked })
            else {
                guest.state = .gone
                return
            }
            remove(oldest)
        }
        guest.state = guest.sent ?? .idle
        guest.sent = nil
        open.append(guest)
        if guest.state == .busy { busy.append(guest) }
    }

    private func freesDescriptor(now: Int64) -> Bool {
        if dropsCandidate() { return true }
        // After a search in vain there is none for a while.
        guard now >= nextSearch else { return false }
        candidates = [Guest.State.blocked, .idle].flatMap { state in
            open.filter { $0.state == state }.reversed().map { ($0, state) }
        }
        if candidates.isEmpty { nextSearch = now + 10_000_000 }
        return dropsCandidate()
    }

    private func dropsCandidate() -> Bool {
        while let (guest, state) = candidates.popLast() {
            guard guest.state == state else { continue }
            remove(guest)
            return true
        }
        return false
    }

    func remove(_ guest: Guest) {
        guest.state = .gone
        open.removeAll { $0 === guest }
        busy.removeAll { $0 === guest }
        pausedUntil = nil
    }
}
