import Glibc
import TestSupport
import Testing

/// The executables that are driven are the release ones.
private let areReleases = Programs.variable("RINGBACK_TEST_BIN").map { !$0.isEmpty } ?? false

@Suite(.enabled(if: areReleases, "RINGBACK_TEST_BIN names no release executables"))
struct `The release executables` {
    /// ICU's functions, its data, and the libraries that bring it: one careless call into full Foundation adds 36 MB.
    @Test(arguments: ["ringbackd", "ringback", "ringback-relay", "ringback-sandbox"])
    func `carry no ICU`(name: String) throws {
        let file = try ExecutableFile(Programs.path(name))
        for sign in ["ucal_", "icudt", "libicu", "lib_FoundationICU", "libFoundation.so"] {
            #expect(!file.contains(sign), "\(sign) in \(name)")
        }
    }

    @Test func `leave nothing of ringback to the dynamic linker`() throws {
        let file = try ExecutableFile(Programs.path("ringback"))
        #expect(file.segments(ExecutableFile.interpreter).isEmpty)
        #expect(file.segments(ExecutableFile.dynamic).isEmpty)
    }

    /// Swift's runtime looks for it before `main`, in eight places.
    @Test func `start ringback without a search for the runtime's backtrace program`() throws {
        let file = try ExecutableFile(Programs.path("ringback"))
        #expect(!file.contains("\u{0}libexec\u{0}"))
    }

    @Test(arguments: ["ringbackd", "ringback-relay", "ringback-sandbox"])
    func `have the Swift library inside, and look for no library beside themselves`(name: String) throws {
        let file = try ExecutableFile(Programs.path(name))
        let needed = file.needed
        #expect(needed.contains("libc.so.6"))
        #expect(!needed.contains { $0.hasPrefix("libswift") || $0.hasPrefix("libFoundation") }, "\(needed)")
        #expect(file.dynamicValues(ExecutableFile.searchPath).isEmpty)
        #expect(file.dynamicValues(ExecutableFile.oldSearchPath).isEmpty)
    }

    /// Addresses differ from start to start, and the tables of the dynamic linker are read-only from the first line on.
    @Test(arguments: ["ringbackd", "ringback-relay", "ringback-sandbox"])
    func `are position-independent and bound at once`(name: String) throws {
        let file = try ExecutableFile(Programs.path(name))
        #expect(file.isPositionIndependent)
        #expect(file.dynamicValues(ExecutableFile.moreFlags).contains { $0 & 1 != 0 }, "DF_1_NOW")
        #expect(!file.segments(ExecutableFile.readOnlyAfterRelocation).isEmpty)
    }

    /// libcurl brings thirty libraries, which take longer to load than the daemon takes to be ready, and which the helper
    /// process never needs: it is loaded behind readiness.
    @Test func `start ringbackd without libcurl`() throws {
        let needed = try ExecutableFile(Programs.path("ringbackd")).needed
        #expect(!needed.contains { $0.hasPrefix("libcurl") || $0.hasPrefix("libssl") }, "\(needed)")
        #expect(needed.count <= 8, "\(needed)")
    }
}

/// An ELF file of this machine's word size (elf(5)), as far as the tests above ask.
@safe private final class ExecutableFile {
    // Types of segments, and tags of the dynamic section.
    static let dynamic = 2, interpreter = 3, readOnlyAfterRelocation = 0x6474_E552
    static let neededLibrary = 1, stringTable = 5, oldSearchPath = 15, searchPath = 29, moreFlags = 0x6FFF_FFFB

    struct Segment {
        let offset, address, size: Int
    }

    private let bytes: UnsafeRawBufferPointer

    init(_ path: String) throws {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(call: "open \(path)", code: errno) }
        defer { close(descriptor) }
        var status = stat()
        unsafe fstat(descriptor, &status)
        let size = Int(status.st_size)
        guard let address = unsafe mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0), unsafe address != MAP_FAILED
        else { throw SystemError(call: "mmap \(path)", code: errno) }
        unsafe bytes = UnsafeRawBufferPointer(start: address, count: size)
        try #require(unsafe bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]), "\(path) is not a 64-bit ELF file")
    }

    deinit { unsafe munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count) }

    /// ET_DYN: may be loaded anywhere.
    var isPositionIndependent: Bool { number(at: 16, bytes: 2) == 3 }

    /// The names of the libraries that it is linked to.
    var needed: [String] {
        // The table is stated by its address in memory: find the segment (PT_LOAD) that brings it there.
        guard let address = dynamicValues(Self.stringTable).first,
            let home = segments(1).first(where: { ($0.address..<$0.address + $0.size).contains(address) })
        else { return [] }
        let table = home.offset + address - home.address
        return dynamicValues(Self.neededLibrary).map { offset in
            unsafe String(decoding: bytes[(table + offset)...].prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    /// True if the bytes of the text are somewhere in it.
    func contains(_ text: String) -> Bool {
        guard var next = unsafe bytes.baseAddress, let first = text.utf8.first else { return false }
        let (length, end) = unsafe (text.utf8.count, next + bytes.count)
        while let found = unsafe memchr(next, Int32(first), end - next), unsafe end - UnsafeRawPointer(found) >= length
        {
            if unsafe memcmp(found, text, length) == 0 { return true }
            unsafe next = UnsafeRawPointer(found) + 1
        }
        return false
    }

    /// The segments of a type.
    func segments(_ type: Int) -> [Segment] {
        let (start, size, count) = (number(at: 32, bytes: 8), number(at: 54, bytes: 2), number(at: 56, bytes: 2))
        return (0..<count).map { start + $0 * size }.filter { number(at: $0, bytes: 4) == type }.map { header in
            Segment(
                offset: number(at: header + 8, bytes: 8), address: number(at: header + 16, bytes: 8),
                size: number(at: header + 32, bytes: 8))
        }
    }

    /// The values of a tag of the dynamic section.
    func dynamicValues(_ tag: Int) -> [Int] {
        segments(Self.dynamic).flatMap { section in
            stride(from: section.offset, to: section.offset + section.size, by: 16)
                .filter { number(at: $0, bytes: 8) == tag }.map { number(at: $0 + 8, bytes: 8) }
        }
    }

    /// A number in little-endian order.
    private func number(at offset: Int, bytes count: Int) -> Int {
        unsafe bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
