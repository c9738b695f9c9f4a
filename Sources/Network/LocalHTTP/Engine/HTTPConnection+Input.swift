internal import Glibc

/// The input side of a connection.
extension HTTPConnection {
    /// How many bytes a client may send while an earlier request is being handled.
    private static let maxPipelined = 128 * 1_024

    /// True if the client has sent too many bytes after the current request. Further bytes then stay in the kernel's
    /// buffer.
    var holdsReads: Bool {
        guard reader.waitingBytes > HTTPConnection.maxPipelined else { return false }
        if case .answering = phase { return true }
        return isBlocked
    }

    /// Reads from the socket once.
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
        // If there were fewer bytes than asked for, no more bytes are there. The kernel reports later bytes as a new
        // edge.
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

    /// Called when the client has closed the connection or its sending side.
    func inputEnded() {
        (hasInput, mustReadEnd) = (false, false)
        switch phase {
        case .closed: break
        case .reading, .closing, .lingering:
            // The client may still read the rest of a response.
            guard isBlocked else { return drop() }
            phase = .closing
            reader.discard()
        case .answering: drop()
        }
    }
}
