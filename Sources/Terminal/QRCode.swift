// The rule: the smallest symbol that holds the text, and in it the better of two levels of error correction. What is
// read from a screen has no stains or folds: more correction would only make the modules smaller.

/// A QR code (ISO/IEC 18004, model 2): a text as a square of dark and light modules, for a telephone to read.
///
/// The text is in byte mode, as UTF-8; a text that is more than ASCII says so.
public struct QRCode: Sendable, Equatable {
    /// How much of a symbol may be unreadable.
    public enum Correction: Sendable, CaseIterable {
        /// About 7 percent.
        case low
        /// About 15 percent.
        case medium
    }

    /// 1 to 40.
    public let version: Int
    public let correction: Correction
    /// Which of the eight masks lies over the data: the one that confuses readers least.
    public let mask: Int
    let grid: QRCodeGrid

    /// Modules on a side, without the light border: 21 to 177.
    public var size: Int { grid.size }

    /// Whether a module is dark; everything outside is light.
    public subscript(column: Int, row: Int) -> Bool { grid[column, row] }

    /// The most bytes of ASCII that a symbol holds; of other texts one less.
    public static let maxBytes = QRCodeVersion(40, .low).textBytes

    /// - Returns: nil for a text that is too long for any symbol.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        let fitting = QRCodeVersion.all.lazy.map { QRCodeVersion($0, .low) }.first { $0.holds(bytes) }
        guard let fitting else { return nil }
        let better = QRCodeVersion(fitting.number, .medium)
        self.init(bytes, as: better.holds(bytes) ? better : fitting, mask: nil)
    }

    /// - Parameters:
    ///   - bytes: as many as the version holds, at most.
    ///   - mask: nil for the best one.
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
