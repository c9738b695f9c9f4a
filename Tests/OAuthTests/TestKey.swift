/// Keys for tests and for nothing else: everybody has them.
enum TestKey {
    /// RFC 7515 appendix A.3.
    static let p256 = """
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m\
        36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}
        """
    /// RFC 8037 appendix A.1.
    static let ed25519 = """
        {"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAY\
        KxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
        """
    /// With `kid` r1 and `alg` PS256.
    static let rsa = """
        {"kty":"RSA","kid":"r1","alg":"PS256","n":"lP4UoOOFQB6BjInF8PChazOuXAhikaaifjTU6v-keCkf5o4\
        Vay-u2tpAVf2DdkEeFR5NX2tjK6iM2fG31AcdRZF4u9QYUhYyaQYyuLyhaSzNx7bvQjLLDqegF37ymE-Fg6zIDxqqB\
        FtPUbq0TMzCPXgzq0f2ZtdNRTSj8YblnJHumcCRzoBvCif82TNJjd3PdLWu_Nj4wmt7j6sOcU1Ws8o7YGsx2NYqSWE\
        5zby_zdDypFnDkjd1qLlyVMdAJUvgLTD0dgGOBmZWz04zGSJSISA3m6swYIPsCjPO8yZPO6xq1Hborarci70KWzKmC\
        dpYeAOTK2knCx22iw7f358lcQ","e":"AQAB","d":"AvSaZscKnlxt42fQfDnUFDkAdCkzANqvCfKSTRYnU7Ofozp\
        7F-mode_gQ2BpycggsKiC_lyA9AAmKUowDwR5hvxb2nB6hMbVpvNkC6R2GHdb6Tfikuk9vEzp5ODBmdDn2BZED-zOd\
        ciJ_X1cUh1vRopBI_cOXwkAb99GN65eX8V2IsPl49upvbM-3Z7VXckJu0RmpJ4D1bNb2rCQJDNufWgRAFKhgbWKRsz\
        lvj2X2mItcqwJoSq03y2wF9JpZOAR-rfpis6dh59L-agycanI73oJWjtuV5dmhlbpsRq4r7rJLXMIdQ9UxfxaeYCQe\
        1_x_3imO-ihNIqcFU-J3r3SAQ","p":"xmIkJS6x0NHbO2x9NOSd62iSFumvW0JcfYY2_KV49iKJaMBmij9bxOCIk4\
        pXrCiEyXo_Tg5nDUP7tZUscsIxUNyU6Hx8kVu3p-y0q11ZGTLctmv6-0Z4bCHnoxpEE4gej-MYc6RT4OLpa1FL4End\
        fAboCYQw-jj-gn7IPdvUC3E","q":"wEO3BvNp7FibBKyxB26KiE8MoBuqJdMnSfCkMCsZj6SC9fxePNOa-yIHC1Rw\
        rCcHZSTWrgHPOhQVHtEWrxZFX5dTPNZd8VvL99UjaWT06kJIxedPPhgW6AS7YCm4U4vpvJZXoOT3uRmEj8TWH6CNZH\
        9BvaMHZgd8mMSFDb-rugE","dp":"TBKYP7XfM-81PV1FygGc2Qe5dZXYy4rwAqZz8X_WmbP2szeMWpkfLKjZVpJnO\
        jozaTs6iUkWlUyreh8g80SqOpLLezc5YVglXfxz736VSwdpAX74uGB2jyiVNcM9taut5Ik1-Cpci9EXpzJ-gRxyFTx\
        kwDlzupAecJYDXU0ty9E","dq":"iAFev7QBAgfL4QqoUDGKHdKNg9UOD6PG7y8jdk-GzW36ljfoEe8-etgfU4xwB9\
        e0C4B7vKvbA6KhLiOKgGCowm4xm5-o5MujBbXoTu3zsqMhB54RGEPCMG7ofaYFllQrDBTt-AsAkhfTBkCfl8_jNWwv\
        _Q4OdcZmBUs_M_KacAE","qi":"t8wUq8aNJApEGGHJ-4EgBV719PgSwmz9BI6VrQ8cALzV4fzLx2rhsMjHHy1UudA\
        DAR5suFbdQ2E8k0lPBBRTMTeKObVQI2sJabrdL29V4h59hWfQpoEiqc136_WexhjZtkJehyC4RcJKoaMlaZdAe9Bqz\
        2GPTcQfu-bUDZy9OhE"}
        """
    static let p256PEM = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZcmJxVY/3gZUq4RZ
        /fvlePIPCCCIDaMG6CZ5y+r2HbehRANCAATPWPkqlincnoPM1bbFBQOuQX3I0J99
        CW4FdyDKIsiJFQy5bE0vDTff97T3diMSFDpRX5gwkYYK2zmouMSHp+3w
        -----END PRIVATE KEY-----
        """
    static let rsaPEM = """
        -----BEGIN PRIVATE KEY-----
        MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQCU/hSg44VAHoGM
        icXw8KFrM65cCGKRpqJ+NNTq/6R4KR/mjhVrL67a2kBV/YN2QR4VHk1fa2MrqIzZ
        8bfUBx1FkXi71BhSFjJpBjK4vKFpLM3Htu9CMssOp6AXfvKYT4WDrMgPGqoEW09R
        urRMzMI9eDOrR/Zm101FNKPxhuWcke6ZwJHOgG8KJ/zZM0mN3c90ta782PjCa3uP
        qw5xTVazyjtgazHY1ipJYTnNvL/N0PKkWcOSN3WouXJUx0AlS+AtMPR2AY4GZlbP
        TjMZIlIhIDebqzBgg+wKM87zJk87rGrUduitqtyLvQpbMqYJ2lh4A5MraScLHbaL
        Dt/fnyVxAgMBAAECggEAAvSaZscKnlxt42fQfDnUFDkAdCkzANqvCfKSTRYnU7Of
        ozp7F+mode/gQ2BpycggsKiC/lyA9AAmKUowDwR5hvxb2nB6hMbVpvNkC6R2GHdb
        6Tfikuk9vEzp5ODBmdDn2BZED+zOdciJ/X1cUh1vRopBI/cOXwkAb99GN65eX8V2
        IsPl49upvbM+3Z7VXckJu0RmpJ4D1bNb2rCQJDNufWgRAFKhgbWKRszlvj2X2mIt
        cqwJoSq03y2wF9JpZOAR+rfpis6dh59L+agycanI73oJWjtuV5dmhlbpsRq4r7rJ
        LXMIdQ9UxfxaeYCQe1/x/3imO+ihNIqcFU+J3r3SAQKBgQDGYiQlLrHQ0ds7bH00
        5J3raJIW6a9bQlx9hjb8pXj2IolowGaKP1vE4IiTilesKITJej9ODmcNQ/u1lSxy
        wjFQ3JTofHyRW7en7LSrXVkZMty2a/r7RnhsIeejGkQTiB6P4xhzpFPg4ulrUUvg
        Sd18BugJhDD6OP6Cfsg929QLcQKBgQDAQ7cG82nsWJsErLEHboqITwygG6ol0ydJ
        8KQwKxmPpIL1/F4805r7IgcLVHCsJwdlJNauAc86FBUe0RavFkVfl1M81l3xW8v3
        1SNpZPTqQkjF508+GBboBLtgKbhTi+m8lleg5Pe5GYSPxNYfoI1kf0G9owdmB3yY
        xIUNv6u6AQKBgEwSmD+13zPvNT1dRcoBnNkHuXWV2MuK8AKmc/F/1pmz9rM3jFqZ
        Hyyo2VaSZzo6M2k7OolJFpVMq3ofIPNEqjqSy3s3OWFYJV38c+9+lUsHaQF++Lhg
        do8olTXDPbWrreSJNfgqXIvRF6cyfoEcchU8ZMA5c7qQHnCWA11NLcvRAoGBAIgB
        Xr+0AQIHy+EKqFAxih3SjYPVDg+jxu8vI3ZPhs1t+pY36BHvPnrYH1OMcAfXtAuA
        e7yr2wOioS4jioBgqMJuMZufqOTLowW16E7t87KjIQeeERhDwjBu6H2mBZZUKwwU
        7fgLAJIX0wZAn5fP4zVsL/0ODnXGZgVLPzPymnABAoGBALfMFKvGjSQKRBhhyfuB
        IAVe9fT4EsJs/QSOla0PHAC81eH8y8dq4bDIxx8tVLnQAwEebLhW3UNhPJNJTwQU
        UzE3ijm1UCNrCWm63S9vVeIefYVn0KaBIqnNd+v1nsYY2bZCXocguEXCSqGjJWmX
        QHvQas9hj03EH7vm1A2cvToR
        -----END PRIVATE KEY-----
        """
}
