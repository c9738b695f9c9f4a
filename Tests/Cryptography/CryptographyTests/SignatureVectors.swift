import Cryptography
import RingbackBase
import Testing

/// Signatures made by other implementations: the examples of RFC 7515 and RFC 8037, and some of another library for
/// what no RFC shows. All keys are public ones.
enum SignatureVectors {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let algorithm: SignatureAlgorithm
        let message: String
        let signature: String
        let isValid: Bool
        let key: @Sendable () throws -> PublicKey
        var testDescription: String { name }
    }

    static func bytes(_ base64URL: String) throws -> [UInt8] {
        try #require(Base64URL.decode(base64URL))
    }

    private static let rfcModulus =
        """
        ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-\
        yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-\
        bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-\
        UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-\
        DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ
        """
    private static let otherModulus =
        """
        mHLKOPIvD7Y-4Huw4akvgxusTlma3APwBF7KMc5WmlJxKSXQ1kUyDcA38NKeV20-\
        wKNW7Ev75hEU_pJNklcgnLApRk9ldrGm3ML0lgUuswgeNE-wloQPoSLOWuz5_Hd_YJ07L8Tiq_gfU71_fQKpQ7mEtyLoDmEMqtAD\
        TT9Jlb7xr_fURDhnNvsU4yeKp4f-\
        RcLYaHAl47KHFiqihcQmTEI9Nj9isI_IVWmsqjJ13KpvHtlKH9NIoqn4Nyo2D8FhMiNQ74WGVNb-\
        WaqIk1_ObOkh32Wv3w1tlcrZ5AkiQOlf4-_y-tOwjkjFuCagK1_nghxExS8v0qdtvaqkdy2pXQ
        """
    private static let rfcPayload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    private static func rsa(_ modulus: String) throws -> PublicKey {
        try PublicKey(rsaModulus: bytes(modulus), exponent: bytes("AQAB"))
    }

    private static func point(_ curve: EllipticCurve, _ x: String, _ y: String) throws -> PublicKey {
        try PublicKey(curve: curve, x: bytes(x), y: bytes(y))
    }

    static let all: [Case] = [
        Case(
            name: "RFC 7515 A.2", algorithm: .rs256, message: "eyJhbGciOiJSUzI1NiJ9." + rfcPayload,
            signature: """
                cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-\
                0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--\
                f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqt\
                FZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77\
                Rw
                """,
            isValid: true, key: { try rsa(rfcModulus) }),
        Case(
            name: "RFC 7515 A.3", algorithm: .es256, message: "eyJhbGciOiJFUzI1NiJ9." + rfcPayload,
            signature: "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
            isValid: true,
            key: {
                try point(
                    .p256, "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
            }),
        Case(
            name: "RFC 8037 A.4", algorithm: .edDSA,
            message: "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
            signature: "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
            isValid: true, key: { try PublicKey(ed25519: bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")) }),
        Case(
            name: "PS256", algorithm: .ps256, message: "a message of no importance",
            signature: """
                EPMJNrcG9Hie-lDBVPwHDFast4SowxU3j5Vsinx6BINDjxUAEUjua2JldisJZqeHpGQAAVhGMK6Mf3PgXKt8dgFUX413FanI3GG_\
                Qagu8oanaJPWLRNAchJvWYoBCSIUdrtTqEKLzx18IYMdXwnY_RYtM9va-iGFf-\
                GgKcKQQD71_kY2BtE5AxcMMZrk_Xqr_REcBrB2aVu3ZfWGf2ZPFXqyMMXruBmZpI6nBiq_S-\
                QXZk0KIq1HKhpZ5CG83bU0Hss3-TdMAnTpZ7OrlqH6rt8NAzYOezhD0B3KQ0LDY-\
                PNFcZkWCSq6xXu38vMQq9c1UL7_oFW5FdnJX9cSZQmMQ
                """,
            isValid: true, key: { try rsa(otherModulus) }),
        Case(
            name: "PS384", algorithm: .ps384, message: "a message of no importance",
            signature: """
                WjIgaXw6fE8GBSqAh_75ZTm-\
                3NIWCqV82X8w5noUW5dabJVxwN7FyAVkfh9hSaegpCIjhfL9xdwdqFicTa16tY18FDCheTB7GCsnAj1Aci4ZOoR8o2foEl_OcnBk\
                Sjees_6W-0zxWf91gKF6I5MqVHTl_def7fLyjktH4cjOztYboCkdY2JfYbLZbxQ421HHnAr8Ndksc0bmZW-\
                E2T_V4waKujtySa_02QSkeb7d_LpR7SjXBANLnMvs2r8R0cV1vJH63uxvuUeJk4WTGmj83oNrzizy3GjMxnytgcpoAJgdhi_Piyq\
                i6mCWXg02YkDGV3stiyvj_FNQedMblF-bOA
                """,
            isValid: true, key: { try rsa(otherModulus) }),
        Case(
            name: "PS512", algorithm: .ps512, message: "a message of no importance",
            signature: """
                SXyAYJJ_K8eXyaQblt-\
                O9sKcZjXmzsHrdMbY3snAkP8oTJSRpEw2POAphiowx7Jg8UyEhzblxQXg7MecqLaUufdRpg57jbAC8E18ojZ9jHrWe796ikvvUCo\
                trqHfXRWktFgPWYrr7Ddow8dmsMjk1cZFEQWUc7EwuziEyQsg71PE30v9W2fL1sC_wqLzCUvdTdwC_zS0zEUX4gW0xnzhlcr1_Yi\
                VoB2ahFQIaRhV45UVrC7nijWPjyP7Thk9T63MKz01mFJkdNZGqlltgyGbJ0sTkm4nlUiaPj73zg4QGQzUcIlSsWAuZAjD96YxTZY\
                cccy3YqhoBhzU95lQQ3Fnxg
                """,
            isValid: true, key: { try rsa(otherModulus) }),
        Case(
            name: "PS256 with a salt of 20 bytes", algorithm: .ps256, message: "a message of no importance",
            signature: """
                aT0Y65jBjlyC8xH4mYTWVE7mTcPTHFCZtP9op9c7H1FmktZAWJ2G7V4DJETyEohdtr4znChFo8ooBfmr878928RPZ6r1Cymr2fmT\
                mDVsHMsAUReiDX8GGSpyCmZ-bVneOl3mv3I1FA76c3zs_2tGzRPQu0cs8KFDsdVKgelR0r3apTx1raAKQLSQn06Au0YovyZxuZ3z\
                UDN8SMsYgjkmFTRLgpy6Z1_tNNsGxWoG-D9bapfhDhRzC-\
                txQuNIUa3DUaR6Vcu6yZIvA1L4yo2vFCezDyyFySAl3CYpK9pzg3zX03WNh6xZIRAtyoeHoXHSJ9SIYJ8SHWHNesQkEGCRIA
                """,
            isValid: false, key: { try rsa(otherModulus) }),
        Case(
            name: "PS256 without salt", algorithm: .ps256, message: "a message of no importance",
            signature: """
                BqGnlAhbk5Rtb0ZhSMD6aMwdf9XKpQdhBIVFeqMewyhEi-\
                M5GZOZ7BRU4Lt4Lcotq2REi6oK1fz25ewu15Tg9pdzgZWf8g9BxF0D1LtSS9xnlKYc1GOdJyR0wXPtDO9YnpwaqDfT2M0jTSVwoa\
                mOYMWG1GSgvnTFOtg98NNTq_pImnQJaOlLqbYUUurGDYKo_gSAXbfHrxm62UyCfuw8EwS53srsmFmuG4KKwIDrqB3UdJlQnopjsX\
                vgS5L7aAwAPB-20JRKJrussdHDSzpIZoR80LlhpLcnRYw_q12N4DHQ_3w4jSlYqCui5KDoohIVfD1hhj2CY_vIvuwko3DYsg
                """,
            isValid: false, key: { try rsa(otherModulus) }),
        Case(
            name: "PS256 with the longest salt", algorithm: .ps256, message: "a message of no importance",
            signature: """
                P0AQreUThHLbL06kIL16r0gOaPD_JQzdnM5rVnItvgKbkOqzsVP-95aSquzX-139vqSDtCntCA2zp6lh4i4QFdDabqmCMXZ82-\
                nGEVgYN6dGCWhCsteEi1OQbf6M2dj6Vc4zvGTkeHC4KckoY81uM7xUW_BJfxVxGQzTRkcv_UxnISNZI-\
                8QVuUr3Mu72EFcqpoUSftxnkWd_PunRzGjzKVhDqIJo2v6CROvAtMibxS1qThnf6laUc_jXuPLwvWE1sikTQO6YefOUkHPy6pByu\
                HLDEdM_yba9y-CgJ6JAoBoKpo0dSv7aoi2_WpaRd8DFSfU3Va9gHyUQTzKWCqy9g
                """,
            isValid: false, key: { try rsa(otherModulus) }),
        Case(
            name: "PS256 with MGF1 over SHA-1", algorithm: .ps256, message: "a message of no importance",
            signature: """
                Ylm-krou-Ov8eZr3EJ1pEI-QG1Z0aOl80D7TcqZV9LN8hAg4d_-xtDJJt9MWJvh5vUYzKylf-eERPWLga_DD-YWH3QVjkgK8UK7b\
                Um9EIAzJA16pBijXA-\
                c1XVwHIwP7HjmH1YbjzfVOeiKgQl0DaB3nzlTlAVgCUfw40VVn0KmXQtcU2NwqBnjPnxNZCZHlWs5bDl5vBb2xFeOsSljENPn7jU\
                pnk4TtsRD1mXvDzYyDxaUfYUtn4lK0gwgg5-VhwunbHr7O2sk-WbHBlFkQKJ5UF14UBPquAuifxUzqRm_vLsxlZNb1FcZ67Dw4--\
                JuvyBiK6jS0zMUiSxm-VETqg
                """,
            isValid: false, key: { try rsa(otherModulus) }),
        Case(
            name: "ES384", algorithm: .es384, message: "a message of no importance",
            signature: """
                tPJEVzJ7Xr9AUEEex2_Zs-QCkgcoow9ZoXOaooxU9z-\
                b7kDNo0RVCI6XTRdItd75veWZt2cq0C2VSnlUewkdRugzx6vypjsXLkPrIsy5C8FihAfEdJcgNhrs98G6UCqE
                """,
            isValid: true,
            key: {
                try point(
                    .p384, "m2FWdvl67EUuE9Exs01CqRmppeby7Mv7XK09P9BsUByQP__5b41DTfRuLH9q5dAa",
                    "jgckGFazC_9enALgSLdFcqitHvPzBWlkQhhZ-gMJxzhkrNjQGCtn01xaF8Cw1DiL")
            }),
        Case(
            name: "ES512", algorithm: .es512, message: "a message of no importance",
            signature: """
                AZaaIiz-eHgAMcSA7JQ60jpmj6uapSDhapif-\
                GxpESUubfJ77QjLJ1U8Yqa7ZS2ej6UOhzQPS8Bg8ekmZoqI6olUAYf4wurymZOhbMG1B_7CQr21LakodkoCKvsfaJFLwM4g-EGF-\
                z-sXIlzPzf6opSfSk9EOIV5Vllb5dO03PlmmeiV
                """,
            isValid: true,
            key: {
                try point(
                    .p521, "ASWQwxMtqZIm2iJVUqaavpEAxY6rsBOQByHsAShQkf6G7wtemd79OfR1ITrF9U06egA3f_FZPtEZV6BV6zHNiInY",
                    "APgvSB9nabZzVeYJBTttzjbkFxwmZVhKtctCRa5Ge1m9o2JyW3AiSrD3JlpSgmrucNI_FDITfysntDcLzi5uj2YD")
            }),
    ]
}
