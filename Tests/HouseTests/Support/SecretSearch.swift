// Every stage ends with a look for the sandbox's tokens where none may be: what the daemon kept on disk, and what it said.

import Testing

enum SecretSearch {
    /// What a text or a file's bytes have of tokens, shortened: `at-` or `rt-` and what the sandbox puts behind it, and
    /// signed tokens (`eyJ…` and two dots).
    static func tokens(in bytes: [UInt8]) -> [String] {
        var found = signedTokens(in: bytes)
        var index = 0
        while index + 3 < bytes.count {
            defer { index += 1 }
            let isHead = bytes[index] == UInt8(ascii: "a") || bytes[index] == UInt8(ascii: "r")
            guard isHead, bytes[index + 1] == UInt8(ascii: "t"), bytes[index + 2] == UInt8(ascii: "-") else { continue }
            let tail = bytes[(index + 3)...].prefix { isWord($0) }
            if tail.count >= 30 { found.append(String(decoding: bytes[index..<(index + 7)], as: UTF8.self) + "…") }
        }
        return found
    }

    private static func signedTokens(in bytes: [UInt8]) -> [String] {
        guard bytes.count >= 60 else { return [] }
        return bytes.split { !isWord($0) && $0 != UInt8(ascii: ".") }.compactMap { word in
            let isToken = word.starts(with: "eyJ".utf8) && word.count >= 60
            return isToken && word.count(where: { $0 == UInt8(ascii: ".") }) == 2 ? "eyJ…" : nil
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    static func files(in directory: String) -> [String] {
        FileTree.names(in: directory).flatMap { name -> [String] in
            let path = "\(directory)/\(name)"
            let below = files(in: path)
            guard below.isEmpty, let bytes = FileTree.bytes(of: path) else { return below }
            return tokens(in: bytes).isEmpty ? [] : [path]
        }
    }
}

@Suite struct `The search for secrets` {
    @Test func `finds a token that is there`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let token = try #require(try await stage.token())
            #expect(SecretSearch.tokens(in: Array("x\(token)".utf8)).count == 1)
            let signed = ["eyJhbGciOiJFUzI1NiJ9", String(repeating: "a", count: 40), "x-_"].joined(separator: ".")
            #expect(SecretSearch.tokens(in: Array("{\"id_token\":\"\(signed)\"}".utf8)).count == 1)
            try stage.write("log: \(token)\n", to: "\(stage.state)/planted")
            #expect(SecretSearch.files(in: stage.state) == ["\(stage.state)/planted"])
            FileTree.remove("\(stage.state)/planted")
        }
    }
}
