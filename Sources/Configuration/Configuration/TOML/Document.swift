/// A parsed TOML 1.0.0 text: a tree of values with their lines.
struct TOMLDocument {
    /// A value, and the first line of its key (for an array's element: of the value).
    struct Node: Equatable {
        let value: Value
        /// From 1.
        let line: Int
    }

    indirect enum Value: Equatable {
        case string(String)
        case integer(Int)
        case boolean(Bool)
        case array([Node])
        /// Sorted by the bytes of the keys.
        case table([Member])
        /// A value that no key of the configuration accepts: a floating-point number, a date or time, or a value that
        /// is nested deeper than ``TOMLDocument/maxDepth``. The text is the type's name with its article.
        case other(String)

        /// The type's name with its article, for messages.
        var name: String {
            switch self {
            case .string: "a string"
            case .integer: "an integer"
            case .boolean: "true or false"
            case .array: "an array"
            case .table: "a table"
            case .other(let name): name
            }
        }
    }

    struct Member: Equatable {
        let key: String
        let node: Node
    }

    /// The text is not valid TOML. The message is one line without control characters.
    struct SyntaxError: Error, Equatable {
        let line: Int?
        let message: String
    }

    /// The maximum size of a file in bytes.
    static let maxSize = 1 << 20
    /// Values below this depth become ``Value/other(_:)``.
    static let maxDepth = 8

    let root: [Member]

    /// Reads a whole file.
    ///
    /// - Throws: ``SyntaxError`` for text that TOML 1.0.0 does not allow, is longer than ``maxSize``, or is nested
    ///   deeper than ``TOMLReader/maxNesting``.
    init(parsing bytes: [UInt8]) throws(SyntaxError) {
        guard bytes.count <= TOMLDocument.maxSize else {
            throw SyntaxError(line: nil, message: "is longer than \(TOMLDocument.maxSize) bytes")
        }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw SyntaxError(line: TOMLDocument.lineOfInvalidText(in: bytes), message: "is not UTF-8")
        }
        var reader = TOMLReader(bytes)
        try reader.readAll()
        root = reader.tree.members()
    }

    private static func lineOfInvalidText(in bytes: [UInt8]) -> Int {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
    }
}
