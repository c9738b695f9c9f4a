import Testing

@testable import Terminal

@Suite struct `A QR code's grid` {
    @Test func `tells level and mask as the standard's tables do`() {
        // Annex C.
        let low = [0x77C4, 0x72F3, 0x7DAA, 0x789D, 0x662F, 0x6318, 0x6C41, 0x6976]
        let medium = [0x5412, 0x5125, 0x5E7C, 0x5B4B, 0x45F9, 0x40CE, 0x4F97, 0x4AA0]
        #expect((0..<8).map { QRCodeGrid.format(.low, mask: $0) } == low)
        #expect((0..<8).map { QRCodeGrid.format(.medium, mask: $0) } == medium)
    }

    @Test func `tells the version as the standard's table does`() {
        // Annex D.
        for (number, bits) in [7: 0x07C94, 8: 0x085BC, 21: 0x15683, 32: 0x209D5, 40: 0x28C69] {
            #expect(QRCodeGrid.withCheck(number, bits: 12, generator: 0x1F25) == bits)
        }
    }

    @Test func `leaves exactly the room that the codewords need`() {
        for number in QRCodeVersion.all {
            let version = QRCodeVersion(number, .low)
            let free = QRCodeGrid(version).isFixed.count { !$0 }
            // What is left over is no whole byte.
            #expect(free / 8 == version.codewords, "\(number)")
        }
    }

    @Test func `changes data alone under a mask`() {
        let version = QRCodeVersion(7, .medium)
        let plain = QRCodeGrid(version)
        for mask in 0..<8 {
            let masked = plain.masked(mask, .medium)
            #expect(masked.isFixed == plain.isFixed)
            let changed = masked.isDark.indices.filter { masked.isDark[$0] != plain.isDark[$0] && !plain.isFixed[$0] }
            let share = Double(changed.count) / Double(plain.isFixed.count { !$0 })
            #expect((0.3...0.7).contains(share), "\(mask)")
            // Timing, a finder's edge and the dark module are as they were.
            #expect(
                (8..<masked.size - 8).allSatisfy { masked[$0, 6] == ($0 % 2 == 0) && masked[6, $0] == ($0 % 2 == 0) })
            #expect((0..<7).allSatisfy { masked[$0, 0] && masked[0, $0] } && !masked[7, 0])
            #expect(masked[8, masked.size - 8])
        }
    }
}
