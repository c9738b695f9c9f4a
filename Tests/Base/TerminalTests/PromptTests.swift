import Testing

@testable import Terminal

@Suite struct `A prompt` {
    @Test(arguments: ["y", "Y", "yes", " yes ", "ja", "Да"])
    func `a clear yes is a yes`(answer: String) { #expect(Prompt.isYes(answer)) }

    @Test(arguments: ["", "n", "no", "yess", "ye", "maybe", "0"])
    func `everything else is a no`(answer: String) { #expect(!Prompt.isYes(answer)) }
}
