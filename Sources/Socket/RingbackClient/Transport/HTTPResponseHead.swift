extension HTTPExchange {
    /// A response's status line and header fields, parsed as bytes (RFC 9112 sections 4 and 5). As `Character`s, a
    /// colon or a space with a combining accent would not be recognized.
    package struct Head: Sendable {
        package let status: Int
        /// Names in lower case, in the order they came; values without the space around them.
        package let fields: [HeaderField]
        /// True for HTTP/1.1, false for HTTP/1.0.
        let isCurrent: Bool

        /// The first field of the name (lower case).
        package func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }

        /// Every field of the name (lower case).
        package func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

        /// - Parameter bytes: without the empty line at the end.
        init(parsing bytes: ArraySlice<UInt8>) throws(RingbackError) {
            var rest = bytes
            (status, isCurrent) = try Head.status(Head.nextLine(of: &rest))
            var fields: [HeaderField] = []
            while !rest.isEmpty { fields.append(try Head.field(Head.nextLine(of: &rest))) }
            self.fields = fields
        }

        /// True for a byte that may be in a line: no control character but the tab.
        static func isFieldByte(_ byte: UInt8) -> Bool { (byte >= 0x20 && byte != 0x7F) || byte == 0x09 }

        /// Changes ASCII letters only: the Kelvin sign is not a k.
        static func lowercased(_ bytes: some Sequence<UInt8>) -> String {
            String(decoding: bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
        }

        /// Takes the bytes up to the next CR LF, or all that are left.
        private static func nextLine(of bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
            var index = bytes.startIndex
            while index + 1 < bytes.endIndex {
                if bytes[index] == 13, bytes[index + 1] == 10 {
                    defer { bytes = bytes[(index + 2)...] }
                    return bytes[..<index]
                }
                index += 1
            }
            defer { bytes = [] }
            return bytes
        }

        private static func status(_ line: ArraySlice<UInt8>) throws(RingbackError) -> (Int, Bool) {
            let failure = RingbackError(.badResponse, "The server sent a status line that is not HTTP/1.1.")
            guard line.allSatisfy(isFieldByte), line.count >= 12, line.starts(with: "HTTP/1.".utf8) else {
                throw failure
            }
            let rest = line.dropFirst(7)
            guard let minor = rest.first, minor == UInt8(ascii: "1") || minor == UInt8(ascii: "0"),
                rest.dropFirst().first == UInt8(ascii: " ")
            else { throw failure }
            let digits = rest.dropFirst(2).prefix { $0 != UInt8(ascii: " ") }
            guard digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }),
                let status = Int(String(decoding: digits, as: UTF8.self)), status >= 100
            else { throw failure }
            return (status, minor == UInt8(ascii: "1"))
        }

        private static func field(_ line: ArraySlice<UInt8>) throws(RingbackError) -> HeaderField {
            guard line.allSatisfy(isFieldByte) else {
                throw RingbackError(.badResponse, "The server sent a header line with a control character.")
            }
            let name = line.prefix { $0 != UInt8(ascii: ":") }
            // No space before the colon, and no line that continues the one before.
            guard !name.isEmpty, name.count < line.count, name.allSatisfy(isTokenByte) else {
                throw RingbackError(.badResponse, "The server sent a header line without a name.")
            }
            var value = line[name.endIndex...].dropFirst()
            while let byte = value.first, byte == 0x20 || byte == 0x09 { value = value.dropFirst() }
            while let byte = value.last, byte == 0x20 || byte == 0x09 { value = value.dropLast() }
            return HeaderField(lowercased(name), String(decoding: value, as: UTF8.self))
        }

        private static func isTokenByte(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
        }
    }
}
