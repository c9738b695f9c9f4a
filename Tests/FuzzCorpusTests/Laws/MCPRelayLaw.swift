import MCPBridge

/// What bridge and relay say to each other: how the bytes are cut changes nothing, what is read is written as the same,
/// and a request has only fields of the list.
enum MCPRelayLaw {
    static func check(_ bytes: [UInt8]) throws {
        if let request = RelayRequest(parsing: bytes) {
            try hold("what is written is read as the same", RelayRequest(parsing: request.line.dropLast()) == request)
            for field in request.fields {
                try hold("a field is of the list", FieldRules.isRequested(field.name))
                try hold("a value is one line", FieldRules.isValue(field.value))
            }
        }
        var whole = RelayReplyReader()
        guard let replies = whole.append(bytes) else { return }
        var cut = RelayReplyReader()
        var pieces: [RelayReply] = []
        for byte in bytes {
            guard let some = cut.append([byte]) else { throw LawBroken(law: "how the bytes are cut changes nothing") }
            pieces += some
        }
        try hold("how the bytes are cut changes nothing", MCPRelayLaw.joined(pieces) == MCPRelayLaw.joined(replies))
        var again = RelayReplyReader()
        try hold("what is written is read as the same", again.append(replies.flatMap(\.bytes)) == replies)
    }

    /// With pieces that follow each other as one.
    private static func joined(_ replies: [RelayReply]) -> [RelayReply] {
        var joined: [RelayReply] = []
        for reply in replies {
            if case .piece(let more) = reply, case .piece(let bytes)? = joined.last {
                joined[joined.count - 1] = .piece(bytes + more)
            } else {
                joined.append(reply)
            }
        }
        return joined
    }
}

extension RelayRequest {
    init?(parsing line: ArraySlice<UInt8>) { self.init(parsing: Array(line)) }
}
