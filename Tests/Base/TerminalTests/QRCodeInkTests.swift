import Testing

@testable import Terminal

@Suite struct `A QR code's ink` {
    @Test func `is chosen by the terminal's own colours where there may be none of ours`() {
        for stated in ["0;15", "0;default;15", "0;7"] { #expect(QRCode.Ink.withoutColor(stated) == .darkText) }
        for stated in ["15;0", "15;default;0", "7;8", "", "default;default", "x"] {
            #expect(QRCode.Ink.withoutColor(stated) == .lightText)
        }
    }
}
