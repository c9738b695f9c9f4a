import Glibc
import Testing

@testable import SessionVault

@Suite struct `A small file in the state directory` {
    private let house = VaultHouse()
    private var file: StateFile { StateFile(directory: house.state, name: "small.json") }

    @Test func `has what was written last, closed to others, and nothing before that`() throws {
        #expect(try file.read(atMost: 10) == nil)
        try file.write(Array("one".utf8))
        try file.write(Array("two".utf8))
        #expect(try file.read(atMost: 10) == Array("two".utf8))
        var status = stat()
        #expect(unsafe lstat("\(house.state)/small.json", &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(house.names(house.state) == ["small.json"])
    }

    @Test func `is not believed if others could have written or read it, or if it is too long`() throws {
        house.write(Array("one".utf8), "\(house.state)/small.json", mode: 0o640)
        #expect(throws: VaultError.self) { try file.read(atMost: 10) }
        unsafe chmod("\(house.state)/small.json", 0o600)
        #expect(try file.read(atMost: 3) == Array("one".utf8))
        #expect(throws: VaultError.self) { try file.read(atMost: 2) }
    }

    @Test func `is no link to another file`() throws {
        house.write(Array("one".utf8), "\(house.path)/elsewhere")
        #expect(unsafe symlink("\(house.path)/elsewhere", "\(house.state)/small.json") == 0)
        #expect(throws: VaultError.self) { try file.read(atMost: 10) }
        try file.write(Array("two".utf8))
        #expect(house.content("\(house.path)/elsewhere") == Array("one".utf8))
    }

    @Test func `makes room under another name, and is not lost by it`() throws {
        try file.write(Array("nonsense".utf8))
        #expect(file.setAside() == "\(house.state)/small.json.damaged")
        #expect(try file.read(atMost: 10) == nil)
        #expect(house.content("\(house.state)/small.json.damaged") == Array("nonsense".utf8))
        #expect(file.setAside() == nil)
    }

    @Test func `says why it cannot be written`() throws {
        let lost = StateFile(directory: "\(house.path)/nowhere", name: "small.json")
        let failure = FileFailure(action: .open, path: "\(house.path)/nowhere", code: ENOENT)
        #expect(throws: VaultError.unwritable(.file(failure))) { try lost.write([1]) }
    }
}
