internal import CSystemd
internal import Glibc

/// One D-Bus message. Its values are written and read in the order of its signature. A value of another type throws
/// `malformed`.
@safe final class BusMessage {
    let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }
    deinit { _ = unsafe csystemd_message_unref(pointer) }

    /// Its memory is zeroed when it is freed.
    func markSensitive() { unsafe csystemd_message_sensitive(pointer) }

    func isSignal(_ member: String, of interface: String) -> Bool {
        unsafe csystemd_message_is_signal(pointer, interface, member)
    }

    /// The path of the object that it is addressed to or comes from.
    var path: String? { unsafe csystemd_message_path(pointer).map { unsafe String(cString: $0) } }

    /// The unique name of the sending connection.
    var sender: String? { unsafe csystemd_message_sender(pointer).map { unsafe String(cString: $0) } }

    func append(_ value: BusValue) throws(BusFailure) {
        switch value {
        case .text(let text): try check(unsafe csystemd_append_text(pointer, BusMessage.code("s"), text))
        case .path(let path): try check(unsafe csystemd_append_text(pointer, BusMessage.code("o"), path))
        case .bool(let value): try check(unsafe csystemd_append_bool(pointer, value))
        case .number(let number): try check(unsafe csystemd_append_number(pointer, number))
        case .signed(let number): try check(unsafe csystemd_append_signed(pointer, number))
        case .byte(let byte): try check(unsafe csystemd_append_byte(pointer, byte))
        case .bytes(let bytes): try check(unsafe csystemd_append_bytes(pointer, bytes, bytes.count))
        case .array(let element, let values): try append(container: "a", element, values)
        case .structure(let values): try append(container: "r", BusValue.signature(of: values), values)
        case .entry(let key, let value): try append(container: "e", "s" + value.signature, [.text(key), value])
        case .variant(let value): try append(container: "v", value.signature, [value])
        }
    }

    private func append(container type: Unicode.Scalar, _ contents: String, _ values: [BusValue]) throws(BusFailure) {
        try check(unsafe csystemd_open_container(pointer, BusMessage.code(type), contents))
        for value in values { try append(value) }
        try check(unsafe csystemd_close_container(pointer))
    }

    func readText() throws(BusFailure) -> String { try read("s") }
    func readTexts() throws(BusFailure) -> [String] { try readArray(of: "s") }
    func readPath() throws(BusFailure) -> String { try read("o") }
    func readPaths() throws(BusFailure) -> [String] { try readArray(of: "o") }

    func readBool() throws(BusFailure) -> Bool {
        var value = false
        guard unsafe csystemd_read_bool(pointer, &value) > 0 else { throw .malformed }
        return value
    }

    func readNumber() throws(BusFailure) -> UInt32 {
        var value: UInt32 = 0
        guard unsafe csystemd_read_number(pointer, &value) > 0 else { throw .malformed }
        return value
    }

    /// A copy of an array of bytes. The caller erases it.
    func readBytes() throws(BusFailure) -> [UInt8] {
        var start: UnsafeRawPointer?
        var count = 0
        guard unsafe csystemd_read_bytes(pointer, &start, &count) > 0 else { throw .malformed }
        return unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }

    private func read(_ type: Unicode.Scalar) throws(BusFailure) -> String {
        guard let text = try next(type) else { throw .malformed }
        return text
    }

    private func readArray(of type: Unicode.Scalar) throws(BusFailure) -> [String] {
        try enter("a", String(type))
        var texts: [String] = []
        while let text = try next(type) { texts.append(text) }
        try leave()
        return texts
    }

    /// Enters a container. Throws `malformed` if there is none.
    func enter(_ type: Unicode.Scalar, _ contents: String) throws(BusFailure) {
        guard try enterNext(type, contents) else { throw .malformed }
    }

    /// Enters the next container; false at the end of the outer one.
    func enterNext(_ type: Unicode.Scalar, _ contents: String) throws(BusFailure) -> Bool {
        let result = unsafe csystemd_enter_container(pointer, BusMessage.code(type), contents)
        try check(result)
        return result > 0
    }

    func leave() throws(BusFailure) { try check(unsafe csystemd_exit_container(pointer)) }
    func skip(_ types: String) throws(BusFailure) { try check(unsafe csystemd_skip(pointer, types)) }

    /// A text of this type; nil at the end of the container.
    private func next(_ type: Unicode.Scalar) throws(BusFailure) -> String? {
        var text: UnsafePointer<CChar>?
        let result = unsafe csystemd_read_text(pointer, BusMessage.code(type), &text)
        try check(result)
        guard result > 0, let text = unsafe text else { return nil }
        return unsafe String(cString: text)
    }

    private func check(_ result: Int32) throws(BusFailure) {
        guard result >= 0 else { throw .malformed }
    }

    private static func code(_ type: Unicode.Scalar) -> CChar { CChar(truncatingIfNeeded: type.value) }
}

indirect enum BusValue {
    case text(String)
    case path(String)
    case bool(Bool)
    case number(UInt32)
    case signed(Int32)
    case byte(UInt8)
    case bytes([UInt8])
    /// With the signature of its elements.
    case array(of: String, [BusValue])
    case structure([BusValue])
    /// Of a dictionary, which is an array of entries.
    case entry(String, BusValue)
    case variant(BusValue)

    static func texts(_ texts: [String]) -> BusValue { .array(of: "s", texts.map { .text($0) }) }

    /// A name and a variant.
    static func property(_ name: String, _ value: BusValue) -> BusValue { .structure([.text(name), .variant(value)]) }

    var signature: String {
        switch self {
        case .text: "s"
        case .path: "o"
        case .bool: "b"
        case .number: "u"
        case .signed: "i"
        case .byte: "y"
        case .bytes: "ay"
        case .array(let element, _): "a" + element
        case .structure(let values): "(\(BusValue.signature(of: values)))"
        case .entry(_, let value): "{s\(value.signature)}"
        case .variant: "v"
        }
    }

    static func signature(of values: [BusValue]) -> String { values.map(\.signature).joined() }
}
