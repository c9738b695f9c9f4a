// What the documentation of `RingbackError` tells an app with Foundation to declare. It is compiled here as it is printed, but for
// `@retroactive`: in the package that declares the type, the compiler refuses that attribute.

public import Foundation
public import RingbackClient
import Testing

// recipe
extension RingbackError: LocalizedError {
    public var errorDescription: String? { description }
}
// end

@Suite struct `An app with Foundation` {
    @Test func `shows the sentence for the user`() {
        let error: any Error = RingbackError(.timeout, "It took too long.")
        #expect(error.localizedDescription == "It took too long.")
    }

    @Test func `finds in the documentation what is compiled here`() throws {
        func text(_ path: String) throws -> [String] {
            try String(contentsOfFile: path, encoding: .utf8).components(separatedBy: "\n")
        }
        let compiled = try text(#filePath)
        let start = try #require(compiled.firstIndex(of: "// recipe"))
        let end = try #require(compiled.firstIndex(of: "// end"))
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let source = try text(root.appending(path: "Sources/Socket/RingbackClient/RingbackError.swift").path)
        let opening = try #require(source.firstIndex(of: "/// ```swift"))
        let printed = source[(opening + 1)...].prefix { $0 != "/// ```" }.map { String($0.dropFirst(4)) }
        #expect(printed.first == "extension RingbackError: @retroactive LocalizedError {")
        #expect(printed.map { $0.replacing("@retroactive ", with: "") } == Array(compiled[(start + 1)..<end]))
    }
}
