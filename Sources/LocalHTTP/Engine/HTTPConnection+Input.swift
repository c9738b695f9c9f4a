internal import Glibc

/// The input side of a connection.
extension HTTPConnection {
    /// How many bytes a client may send while an earlier request is being handled.
    private static let maxPipelined = 128 * 1_024

    /// True if the client has sent too much ahead. Further bytes then stay in the kernel's buffer instead of our memory.
    var holdsReads: Bool {
        guard reader.waitingBytes > HTTPConnection.maxPipelined else { return false }
        if case .answering = phase { return true }
        return isBlocked
    }

    /// Reads once.
    func receive() {
        let socket = number
        let (count, isFull) = unsafe reader.receive(spare: &loop.spare) { room in
            let count = unsafe recv(socket, room.baseAddress, room.count, 0)
            return count < 0 ? -Int(errno) : count
        }
        guard count > 0 else {
            switch Int32(-count) {
            case 0: inputEnded()
            case EAGAIN: hasInput = false
            case EINTR: break
            default: drop()
            }
            return
        }
        // Fewer bytes than asked for: there were no more. What comes now is reported by an edge.
        hasInput = isFull || mustReadEnd
        wasShort = !hasInput
        switch phase {
        case .reading, .answering: break
        case .lingering(let remaining):
            reader.discard()
            phase = .lingering(remaining - count)
            if remaining < count { drop() }
        case .closing, .closed: reader.discard()
        }
    }

    /// The client has closed the connection, or at least its side of it.
    func inputEnded() {
        (hasInput, mustReadEnd) = (false, false)
        switch phase {
        case .closed: break
        case .reading, .closing, .lingering:
            // What is left of a response may still be read.
            guard isBlocked else { return drop() }
            phase = .closing
            reader.discard()
        case .answering: drop()
        }
    }
}
