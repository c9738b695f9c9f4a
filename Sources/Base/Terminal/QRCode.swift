// Chooses the smallest version that holds the text, and in it error correction level M instead of L if the text still
// fits. Higher levels would make the modules smaller, and a screen has no damage to correct.

/// A QR code (ISO/IEC 18004, model 2): a text as a square of dark and light modules, for a telephone to read.
///
/// The text is encoded in byte mode as UTF-8. If it is not ASCII, an ECI designator says so.
public struct QRCode: Sendable, Equatable {
    /// The level of error correction: how much of a symbol may be unreadable.
    public enum Correction: Sendable, CaseIterable {
        /// About 7 percent.
        case low
        /// About 15 percent.
        case medium
    }

    /// 1 to 40.
    public let version: Int
    public let correction: Correction
    /// The number of the mask that is applied to the data: the one with the lowest penalty.
    public let mask: Int
    let grid: QRCodeGrid

    /// Modules on a side, without the quiet zone: 21 to 177.
    public var size: Int { grid.size }

    /// True if a module is dark. Outside the symbol all modules are light.
    public subscript(column: Int, row: Int) -> Bool { grid[column, row] }

    /// The maximum number of bytes of an ASCII text; one less for other texts.
    public static let maxBytes = QRCodeVersion(40, .low).textBytes

    /// - Returns: nil for a text that is too long for version 40.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        let fitting = QRCodeVersion.all.lazy.map { QRCodeVersion($0, .low) }.first { $0.holds(bytes) }
        guard let fitting else { return nil }
        let better = QRCodeVersion(fitting.number, .medium)
        self.init(bytes, as: better.holds(bytes) ? better : fitting, mask: nil)
    }

    /// - Parameters:
    ///   - bytes: must fit the version.
    ///   - mask: nil for the one with the lowest penalty.
    init(_ bytes: [UInt8], as version: QRCodeVersion, mask: Int?) {
        var grid = QRCodeGrid(version)
        grid.draw(QRCodeCodewords.codewords(bytes, version))
        (self.mask, self.grid) =
            mask.map { ($0, grid.masked($0, version.correction)) } ?? QRCode.best(grid, version.correction)
        (self.version, correction) = (version.number, version.correction)
    }

    private static func best(_ grid: QRCodeGrid, _ correction: Correction) -> (Int, QRCodeGrid) {
        var best = (mask: 0, grid: grid.masked(0, correction))
        var least = best.grid.penalty
        for mask in 1..<8 {
            let other = grid.masked(mask, correction)
            let penalty = other.penalty
            if penalty < least { (best, least) = ((mask, other), penalty) }
        }
        return best
    }
}
