import CErasedHeap
import Glibc
import Testing

private let mark: UInt8 = 0xA7
private let blocks = 64
/// One byte may be of an address that the allocator has noted in a free block; so many in a row are not.
private let run = 8

/// The test program has the daemon's allocator.
@Suite(.enabled(if: cerasedheap_is_active(), "a sanitizer has an allocator of its own"))
struct `Memory that is given back` {
    private struct Block {
        let address: UInt

        init(_ size: Int) throws {
            let block = unsafe UInt(bitPattern: malloc(size))
            address = try #require(block == 0 ? nil : block)
        }

        var pointer: UnsafeMutableRawPointer? { unsafe UnsafeMutableRawPointer(bitPattern: address) }

        func bytes(_ count: Int) -> [UInt8] { unsafe Array(UnsafeRawBufferPointer(start: pointer, count: count)) }
        func fill(_ count: Int) { _ = unsafe pointer.map { unsafe memset($0, Int32(mark), count) } }
        /// The address after it; 0 where there was no memory.
        func resize(_ size: Int) -> UInt { unsafe UInt(bitPattern: realloc(pointer, size)) }
        func free() { unsafe Glibc.free(pointer) }
    }

    /// Gets blocks of a size, marks every byte, lets `use` do something that gives them back, and returns how many of the
    /// next blocks of that size are the same ones, and how many of all have a mark.
    private func leftOver(_ size: Int, _ use: (Block) -> Void) throws -> (same: Int, marked: Int) {
        let former = try (0..<blocks).map { _ in try Block(size) }
        for block in former { block.fill(size) }
        for block in former { use(block) }
        let next = try (0..<blocks).map { _ in try Block(size) }
        defer { for block in next { block.free() } }
        let addresses = Set(former.map(\.address))
        return (
            next.count { addresses.contains($0.address) },
            next.count { $0.bytes(size).split { $0 != mark }.contains { $0.count >= run } }
        )
    }

    // Each size is all that the block has room for.

    @Test(arguments: [24, 40, 104, 1_000, 5_000, 60_008])
    func `holds nothing of what was in it, after free`(size: Int) throws {
        let found = try leftOver(size) { $0.free() }
        #expect(found.same > 0 && found.marked == 0)
    }

    @Test(arguments: [(40, 4_000), (1_000, 100_000), (5_000, 300), (60_008, 24)])
    func `holds nothing of what was in it, after realloc has moved it`(size: Int, next: Int) throws {
        let found = try leftOver(size) { block in
            let moved = block.resize(next)
            #expect(moved != 0 && moved != block.address)
            let bytes = unsafe UnsafeRawBufferPointer(
                start: UnsafeRawPointer(bitPattern: moved), count: min(size, next))
            #expect(unsafe bytes.allSatisfy { $0 == mark })
            unsafe Glibc.free(UnsafeMutableRawPointer(bitPattern: moved))
        }
        #expect(found.same > 0 && found.marked == 0)
    }

    @Test(arguments: [(1_000, 700), (4 << 20, 3 << 20 + 5)])
    func `holds nothing behind the end of a block that has become a little shorter`(size: Int, next: Int) throws {
        let block = try Block(size)
        block.fill(size)
        #expect(block.resize(next) == block.address)
        let bytes = block.bytes(size)
        #expect(bytes[..<next].allSatisfy { $0 == mark } && bytes[next...].allSatisfy { $0 == 0 })
        block.free()
    }

    /// libpq makes room for a message when its length arrives.
    @Test func `a block of a gigabyte that was hardly written to takes no gigabyte when it is freed`() throws {
        func most() -> Int {
            var usage = rusage()
            unsafe getrusage(Int32(RUSAGE_SELF.rawValue), &usage)
            return usage.ru_maxrss
        }
        let before = most()
        let block = try Block(1 << 30)
        block.fill(1)
        block.free()
        #expect(most() - before < 100 << 10)
    }

    @Test func `no block and no bytes are as the C library has them`() throws {
        Glibc.free(nil)
        #expect(try Block(100).resize(0) == 0)
    }

    @Test func `an allocation that is refused leaves the block as it was`() throws {
        let block = try Block(104)
        block.fill(104)
        #expect(block.resize(.max / 2) == 0)
        #expect(block.bytes(104).allSatisfy { $0 == mark })
        block.free()
    }
}
