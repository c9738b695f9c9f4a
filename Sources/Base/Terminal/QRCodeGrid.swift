// The patterns by which a reader finds the symbol (finders, timing, alignment, format, version) are fixed. Data is
// placed around them, and masks change only data.

/// The modules of a symbol.
struct QRCodeGrid: Sendable, Equatable {
    let size: Int
    private(set) var isDark: [Bool]
    /// True for modules of a pattern, false for data.
    private(set) var isFixed: [Bool]

    /// The patterns of a version without data.
    init(_ version: QRCodeVersion) {
        size = version.size
        isDark = Array(repeating: false, count: size * size)
        isFixed = isDark
        for index in 0..<size {
            set(6, index, index % 2 == 0)
            set(index, 6, index % 2 == 0)
        }
        for (column, row) in [(3, 3), (size - 4, 3), (3, size - 4)] { drawFinder(column, row) }
        drawAlignments(version.alignments)
        // Reserves the modules of the format, which is drawn with the mask.
        drawFormat(0)
        if version.number >= 7 { drawVersion(version.number) }
    }

    /// Modules outside the symbol are light.
    subscript(column: Int, row: Int) -> Bool {
        isInside(column, row) && isDark[row * size + column]
    }

    private func isInside(_ column: Int, _ row: Int) -> Bool {
        (0..<size).contains(column) && (0..<size).contains(row)
    }

    /// Sets a module that belongs to a pattern.
    private mutating func set(_ column: Int, _ row: Int, _ isDark: Bool) {
        guard isInside(column, row) else { return }
        self.isDark[row * size + column] = isDark
        isFixed[row * size + column] = true
    }

    // MARK: Patterns

    /// Draws a finder with its separator around this centre.
    private mutating func drawFinder(_ column: Int, _ row: Int) {
        for down in -4...4 {
            for right in -4...4 {
                let distance = max(abs(down), abs(right))
                set(column + right, row + down, distance != 2 && distance != 4)
            }
        }
    }

    private mutating func drawAlignments(_ places: [Int]) {
        guard let last = places.last else { return }
        for column in places {
            for row in places where !((column == 6 || column == last) && row == 6 || column == 6 && row == last) {
                for down in -2...2 {
                    for right in -2...2 { set(column + right, row + down, max(abs(down), abs(right)) != 1) }
                }
            }
        }
    }

    /// Draws level and mask twice: 5 bits and 10 of a BCH code (section 7.9).
    private mutating func drawFormat(_ bits: Int) {
        func bit(_ index: Int) -> Bool { bits >> index & 1 == 1 }
        for index in 0..<15 {
            // The first copy is around the top left finder, without the timing patterns.
            switch index {
            case 0..<6: set(8, index, bit(index))
            case 6, 7: set(8, index + 1, bit(index))
            case 8: set(7, 8, bit(index))
            default: set(14 - index, 8, bit(index))
            }
            // The second copy is half at the top right and half at the bottom left finder.
            if index < 8 { set(size - 1 - index, 8, bit(index)) } else { set(8, size - 15 + index, bit(index)) }
        }
        set(8, size - 8, true)
    }

    /// Draws the version twice: 6 bits and 12 of a BCH code (section 7.10).
    private mutating func drawVersion(_ number: Int) {
        let bits = QRCodeGrid.withCheck(number, bits: 12, generator: 0x1F25)
        for index in 0..<18 {
            let isDark = bits >> index & 1 == 1
            set(size - 11 + index % 3, index / 3, isDark)
            set(index / 3, size - 11 + index % 3, isDark)
        }
    }

    /// The value followed by the remainder of its polynomial division.
    static func withCheck(_ value: Int, bits: Int, generator: Int) -> Int {
        var remainder = value
        for _ in 0..<bits { remainder = (remainder << 1) ^ ((remainder >> (bits - 1)) * generator) }
        return value << bits | remainder
    }

    /// The format's 15 bits as they are drawn (annex C).
    static func format(_ correction: QRCode.Correction, mask: Int) -> Int {
        withCheck((correction == .low ? 0b01 : 0b00) << 3 | mask, bits: 10, generator: 0x537) ^ 0x5412
    }

    // MARK: Data

    /// Places the codewords in columns of two modules from the right, alternately upwards and downwards (section
    /// 7.7.3).
    mutating func draw(_ codewords: [UInt8]) {
        var index = 0
        var isUpward = true
        for right in stride(from: size - 1, to: 0, by: -2).map({ $0 <= 6 ? $0 - 1 : $0 }) {
            for step in 0..<size {
                let row = isUpward ? size - 1 - step : step
                for column in [right, right - 1] where !isFixed[row * size + column] && index < codewords.count * 8 {
                    isDark[row * size + column] = codewords[index / 8] >> UInt8(7 - index % 8) & 1 == 1
                    index += 1
                }
            }
            isUpward.toggle()
        }
    }

    /// A copy with the mask applied to the data (section 7.8.2), and with the format of this mask.
    func masked(_ mask: Int, _ correction: QRCode.Correction) -> QRCodeGrid {
        var grid = self
        for row in 0..<size {
            for column in 0..<size where !isFixed[row * size + column] {
                if QRCodeGrid.isTurned(column, row, by: mask) { grid.isDark[row * size + column].toggle() }
            }
        }
        grid.drawFormat(QRCodeGrid.format(correction, mask: mask))
        return grid
    }

    private static func isTurned(_ column: Int, _ row: Int, by mask: Int) -> Bool {
        switch mask {
        case 0: (row + column) % 2 == 0
        case 1: row % 2 == 0
        case 2: column % 3 == 0
        case 3: (row + column) % 3 == 0
        case 4: (row / 2 + column / 3) % 2 == 0
        case 5: row * column % 2 + row * column % 3 == 0
        case 6: (row * column % 2 + row * column % 3) % 2 == 0
        default: ((row + column) % 2 + row * column % 3) % 2 == 0
        }
    }
}
