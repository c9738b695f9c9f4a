import RingbackBase
import Testing

@testable import BrokerCore

@Suite struct `Tokens that an origin refuses` {
    private let rule: OriginRule
    private var now = BootInstant(milliseconds: 1_000_000)
    private var rejections = OriginRejections()
    private let first: [UInt8] = [1]
    private let second: [UInt8] = [2]
    private let third: [UInt8] = [3]

    init() throws { rule = OriginRule(try OriginPattern(parsing: "https://git.example.org/*")) }

    private mutating func gave(
        _ digest: [UInt8], _ key: TokenKey = .own, at socket: String? = nil, isReplacement: Bool = false
    ) {
        rejections.gave(digest, .init(key: key, socket: socket), for: rule, isReplacement: isReplacement, at: now)
    }

    private mutating func reject(
        _ digest: [UInt8], isGuess: Bool = false, at socket: String? = nil
    ) -> OriginRegistry.Rejection {
        rejections.reject(digest, isGuess: isGuess, at: socket, by: rule, at: now)
    }

    private func mustReplace(_ digest: [UInt8], _ key: TokenKey = .own, at socket: String? = nil) -> Bool {
        rejections.mustReplace(digest, .init(key: key, socket: socket), for: rule, at: now)
    }

    private func isRepeated(_ digest: [UInt8]) -> Bool {
        rejections.isRepeated(digest, .init(key: .own, socket: nil), by: rule, at: now)
    }

    @Test mutating func `are replaced by the next lookup`() {
        gave(first)
        #expect(!mustReplace(first))
        #expect(reject(first) == .noted)
        #expect(mustReplace(first))
        gave(second, isReplacement: true)
        #expect(!mustReplace(second) && !isRepeated(second))
    }

    @Test mutating func `count once, however many processes tell`() {
        gave(first)
        #expect(reject(first) == .noted)
        for _ in 0..<50 { #expect(reject(first) == .ignored) }
        gave(second, isReplacement: true)
        // A process that still had the first one.
        #expect(reject(first) == .ignored)
        #expect(!mustReplace(second))
    }

    /// As go, which does not say which token it sent.
    @Test mutating func `are not guessed to be the one that has just replaced them`() {
        gave(first)
        #expect(reject(first, isGuess: true) == .noted)
        gave(second, isReplacement: true)
        for _ in 0..<50 {
            gave(second)
            #expect(reject(second, isGuess: true) == .ignored)
        }
        #expect(!mustReplace(second) && !isRepeated(second))
        // A tool that knows the token is believed.
        var other = self
        #expect(other.reject(second) == .repeated)
        now = now + .seconds(10)
        #expect(reject(second, isGuess: true) == .repeated)
    }

    @Test mutating func `were not refused if they were never given, or not for this origin`() throws {
        #expect(reject(first) == .ignored)
        gave(first)
        #expect(reject(second) == .ignored)
        let other = OriginRule(rule.pattern, username: "ada")
        #expect(rejections.reject(first, at: nil, by: other, at: now) == .ignored)
        #expect(!mustReplace(first))
    }

    @Test mutating func `are not replaced for five minutes once two in a row were refused`() {
        gave(first)
        _ = reject(first)
        gave(second, isReplacement: true)
        #expect(reject(second) == .repeated)
        #expect(!mustReplace(second) && isRepeated(second))
        gave(second)
        #expect(!mustReplace(second))
        now = now + .seconds(299)
        #expect(!mustReplace(second))
        now = now + .seconds(1)
        #expect(mustReplace(second) && !isRepeated(second))
        gave(third, isReplacement: true)
        #expect(reject(third) == .repeated)
    }

    @Test mutating func `are not in a row if another token came by itself in between`() {
        gave(first)
        _ = reject(first)
        gave(second, isReplacement: true)
        gave(third)
        #expect(reject(third) == .noted)
        #expect(mustReplace(third))
    }

    @Test mutating func `are given again for five minutes if the refresh brought the same one`() {
        gave(first)
        _ = reject(first)
        gave(first, isReplacement: true)
        #expect(!mustReplace(first) && isRepeated(first))
        now = now + .seconds(300)
        #expect(mustReplace(first))
    }

    /// As for an exposed socket that gets a token with fewer scopes.
    @Test mutating func `stay refused whatever is given and refused of another key`() {
        let downscoped = TokenKey(scopes: ["read"])
        gave(first)
        #expect(reject(first) == .noted)
        gave(second, downscoped)
        #expect(mustReplace(first) && rejections.hasGiven(first, at: nil, for: rule))
        // A rejection of the other key's token does not touch this one's.
        #expect(reject(second) == .noted)
        #expect(mustReplace(second, downscoped) && mustReplace(first))
        gave(third, downscoped, isReplacement: true)
        #expect(reject(third) == .repeated)
        #expect(!mustReplace(third, downscoped) && mustReplace(first))
    }

    /// A program behind an exposed socket that tells lies about the token that everybody gets.
    @Test mutating func `are those of each socket, and no other socket goes without a refresh`() {
        gave(first)
        gave(first, at: "ci")
        #expect(reject(first, at: "ci") == .noted)
        #expect(mustReplace(first, at: "ci") && !mustReplace(first))
        gave(second, at: "ci", isReplacement: true)
        #expect(reject(second, at: "ci") == .repeated)
        gave(second)
        #expect(!isRepeated(second) && reject(second) == .noted)
        #expect(mustReplace(second) && !mustReplace(second, at: "ci"))
        // A token that was not given through the socket is not refused through it.
        gave(third)
        #expect(reject(third, at: "ci") == .ignored && !rejections.hasGiven(third, at: "ci", for: rule))
    }

    @Test mutating func `are refused of every key for which they were given`() {
        let downscoped = TokenKey(scopes: ["read"])
        gave(first)
        gave(first, downscoped)
        #expect(reject(first) == .noted)
        #expect(mustReplace(first) && mustReplace(first, downscoped))
        #expect(reject(first) == .ignored)
    }

    @Test mutating func `are forgotten where many keys came after theirs`() {
        gave(first)
        _ = reject(first)
        for number in 1..<OriginRejections.mostHolders {
            now = now + .seconds(1)
            gave(second, TokenKey(scopes: ["s\(number)"]))
        }
        #expect(mustReplace(first))
        now = now + .seconds(1)
        gave(second, TokenKey(scopes: ["one more"]))
        #expect(!mustReplace(first) && !rejections.hasGiven(first, at: nil, for: rule))
    }

    @Test mutating func `are forgotten with their origin`() {
        gave(first)
        _ = reject(first)
        rejections.keep([])
        #expect(!mustReplace(first) && reject(first) == .ignored)
    }
}
