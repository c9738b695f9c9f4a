import Testing

@testable import BrokerCore
@testable import SupabaseSignIn

@Suite struct `The methods of a Supabase project` {
    @Test func `begin with a sign-in, but for three`() {
        let others = SupabaseMethod.allCases.filter { !SupabaseMethod.ofSignIn.contains($0) }
        #expect(others == [.recovery, .link, .userUpdate])
    }

    @Test func `end in a browser or a mail program where a page or a link ends them`() {
        #expect(SupabaseMethod.allCases.filter(\.endsElsewhere) == [.browser, .magicLink, .sso, .page])
    }

    @Test func `are done at once where all that they need is handed in`() {
        let atOnce: [SupabaseMethod] = [.password, .signUp, .idToken, .anonymous, .session]
        #expect(SupabaseMethod.allCases.filter(\.startsAtOnce) == atOnce)
    }

    @Test func `are known by their words on the wire`() {
        for method in SupabaseMethod.allCases { #expect(SupabaseMethod(method.method) == method) }
        #expect(SupabaseMethod(SignInMethod(rawValue: "device")) == nil)
        #expect(SupabaseMethod(.browser) == .browser)
    }
}
