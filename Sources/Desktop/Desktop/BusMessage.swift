internal import CSystemd
internal import Glibc

/// One D-Bus message. Its values are written and read in the order of its signature. A value of another type throws
/// `malformed`.
@safe final class BusMessage {
    let pointer: OpaquePointer

    init(owning pointer: OpaquePointer) {
        unsafe self.pointer = pointer
    }

    deinit {
        _ = unsafe csystemd_message_unref(pointer)
    }

    /// Its memory is zeroed when it is freed.
    func markSensitive() {
        unsafe csystemd_message_sensitive(pointer)
    }

    func isSignal(_ member: String, of interface: String) -> Bool {
        unsafe csystemd_message_is_signal(pointer, interface, member)
    }

    /// The path of the object that it is addressed to or comes from.
    var path: String? { unsafe csystemd_message_path(pointer).map { unsafe String(cString: $0) } }

    /// The unique name of the sending connection.
    var sender: String? { unsafe csystemd_message_sender(pointer).map { unsafe String(cString: $0) } }

    // MARK: Writing

    func append(_ text: String) throws(BusFailure) {
        try check(unsafe csystemd_append_text(pointer, BusMessage.code("s"), text))
    }

    func append(path: String) throws(BusFailure) {
        try check(unsafe csystemd_append_text(pointer, BusMessage.code("o"), path))
    }

    func append(_ value: Bool) throws(BusFailure) {
        try check(unsafe csystemd_append_bool(pointer, value))
    }

    func append(_ number: UInt32) throws(BusFailure) {
        try check(unsafe csystemd_append_number(pointer, number))
    }

    func append(signed number: Int32) throws(BusFailure) {
        try check(unsafe csystemd_append_signed(pointer, number))
    }

    func append(byte: UInt8) throws(BusFailure) {
        try check(unsafe csystemd_append_byte(pointer, byte))
    }

    func append(bytes: [UInt8]) throws(BusFailure) {
        try check(unsafe csystemd_append_bytes(pointer, bytes, bytes.count))
    }

    /// Opens a container: `a`, `r` (structure), `e` (dictionary entry) or `v`, with the signature of its contents.
    func open(_ type: Unicode.Scalar, _ contents: String) throws(BusFailure) {
        try check(unsafe csystemd_open_container(pointer, BusMessage.code(type), contents))
    }

    /// Closes that many containers.
    func close(_ count: Int = 1) throws(BusFailure) {
        for _ in 0..<count { try check(unsafe csystemd_close_container(pointer)) }
    }

    /// A name and a variant with a text, as an entry of a dictionary (`e`) or a structure (`r`).
    func append(_ container: Unicode.Scalar, _ name: String, _ text: String) throws(BusFailure) {
        try openVariant(container, name, "s")
        try append(text)
        try close(2)
    }

    /// The same up to the variant's value. It is completed by closing two containers.
    func openVariant(_ container: Unicode.Scalar, _ name: String, _ type: String) throws(BusFailure) {
        try open(container, "sv")
        try append(name)
        try open("v", type)
    }

    /// A dictionary of texts.
    func append(_ texts: KeyValuePairs<String, String>) throws(BusFailure) {
        try open("a", "{ss}")
        for (name, value) in texts {
            try open("e", "ss")
            try append(name)
            try append(value)
            try close()
        }
        try close()
    }

    /// An array of strings.
    func append(texts: [String]) throws(BusFailure) {
        try open("a", "s")
        for text in texts { try append(text) }
        try close()
    }

    // MARK: Reading

    /// A string; nil at the end of the container.
    func nextText() throws(BusFailure) -> String? { try next("s") }

    /// An object path; nil at the end of the container.
    func nextPath() throws(BusFailure) -> String? { try next("o") }

    func readText() throws(BusFailure) -> String {
        guard let text = try nextText() else { throw .malformed }
        return text
    }

    func readPath() throws(BusFailure) -> String {
        guard let path = try nextPath() else { throw .malformed }
        return path
    }

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

    /// An array of object paths.
    func readPaths() throws(BusFailure) -> [String] {
        try enter("a", "o")
        var paths: [String] = []
        while let path = try nextPath() { paths.append(path) }
        try leave()
        return paths
    }

    /// An array of strings.
    func readTexts() throws(BusFailure) -> [String] {
        try enter("a", "s")
        var texts: [String] = []
        while let text = try nextText() { texts.append(text) }
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

    func leave() throws(BusFailure) {
        try check(unsafe csystemd_exit_container(pointer))
    }

    func skip(_ types: String) throws(BusFailure) {
        try check(unsafe csystemd_skip(pointer, types))
    }

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
