/// Keys for tests and for nothing else: everybody has them.
enum TestJWK {
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
}
