import TestSupport
import Testing

@testable import Codecs

/// AES-256-CBC, AES key wrap, PBKDF2 and digests, with the test vectors of their standards.
struct CipherTests {
  /// The key in NIST SP 800-38A, appendix F.2.5.
  private static let key = bytes("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
  private static let vector = bytes("000102030405060708090a0b0c0d0e0f")
  private static let plain = bytes(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
      + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
  private static let encrypted = bytes(
    "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"
      + "39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b")

  @Test(arguments: [16, 32, 48, 64]) func chainedBlocksAreThoseOfTheStandard(portion: Int) {
    let key = secret(Self.key)
    var encryptor = BlockCipher(.encrypt, key: key, vector: Self.vector)
    var decryptor = BlockCipher(.decrypt, key: key, vector: Self.vector)
    var (encrypted, decrypted): ([UInt8], [UInt8]) = ([], [])
    for start in stride(from: 0, to: Self.plain.count, by: portion) {
      let range = start..<min(start + portion, Self.plain.count)
      encryptor.process(Self.plain.span.extracting(range), appendingTo: &encrypted)
      decryptor.process(Self.encrypted.span.extracting(range), appendingTo: &decrypted)
    }
    #expect(encrypted == Self.encrypted)
    #expect(decrypted == Self.plain)
  }

  @Test func blocksAreDecryptedInPlace() {
    var bytes = Self.encrypted
    var cipher = BlockCipher(.decrypt, key: secret(Self.key), vector: Self.vector)
    bytes.withUnsafeMutableBytes { all in
      cipher.process(UnsafeMutableRawBufferPointer(rebasing: all[..<32]))
      cipher.process(UnsafeMutableRawBufferPointer(rebasing: all[32...]))
    }
    #expect(bytes == Self.plain)
  }

  @Test func paddingIsOneToSixteenBytes() {
    for count in 0...48 {
      let padding = BlockPadding.bytes(after: UInt64(count))
      #expect((1...16).contains(padding.count) && (count + padding.count) % 16 == 0)
      let padded = [UInt8](repeating: 0, count: count) + padding
      #expect(BlockPadding.count(atEndOf: padded.span) == padding.count)
    }
    for end: [UInt8] in [[0], [17], [1, 2], [3, 2, 3], [255]] {
      let bytes = [UInt8](repeating: 0, count: 16 - end.count) + end
      #expect(BlockPadding.count(atEndOf: bytes.span) == nil, "\(end)")
    }
    #expect(BlockPadding.count(atEndOf: [1].span) == nil)
  }

  /// RFC 3394, sections 4.3 and 4.6.
  @Test(arguments: [
    (
      "00112233445566778899aabbccddeeff", "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"
    ),
    (
      "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f",
      "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"
    ),
  ]) func wrappedKeysAreThoseOfTheStandard(plain: String, wrapped: String) throws {
    let key = secret(Array(0..<32))
    #expect(KeyWrap.wrap(secret(bytes(plain)), with: key) == bytes(wrapped))
    #expect(unwrap(bytes(wrapped), key) == bytes(plain))
  }

  @Test func changedOrForeignKeysAreNotUnwrapped() {
    let key = secret(Array(0..<32))
    let wrapped = KeyWrap.wrap(secret(Array(repeating: 7, count: 32)), with: key)
    for index in wrapped.indices {
      var changed = wrapped
      changed[index] ^= 1
      #expect(unwrap(changed, key) == nil)
    }
    #expect(unwrap(wrapped, secret(Array(1...32))) == nil)
    for count in [0, 1, 8, 16, 23, 25, 39] {
      #expect(unwrap(Array(wrapped.prefix(count)), key) == nil, "\(count) bytes")
    }
  }

  /// RFC 6070, section 2.
  @Test(arguments: [
    ("password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
    ("password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
    ("password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"),
    (
      "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096,
      "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"
    ),
    ("pass\0word", "sa\0lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"),
  ]) func keysByHMACWithSHA1(password: String, salt: String, rounds: UInt32, key: String) {
    let derived = PasswordKey.derive(
      from: secret(Array(password.utf8)), salt: Array(salt.utf8), rounds: rounds, hash: .sha1,
      count: key.utf8.count / 2)
    #expect(open(derived) == bytes(key))
  }

  /// RFC 7914, section 11.
  @Test(arguments: [
    (
      "passwd", "salt", 1,
      "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
        + "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"
    ),
    (
      "Password", "NaCl", 80_000,
      "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"
        + "a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d"
    ),
  ]) func keysByHMACWithSHA256(password: String, salt: String, rounds: UInt32, key: String) {
    let derived = PasswordKey.derive(
      from: secret(Array(password.utf8)), salt: Array(salt.utf8), rounds: rounds, hash: .sha256,
      count: 64)
    #expect(open(derived) == bytes(key))
  }

  /// A key can be derived from an empty password: libcrypto must not treat its address as a missing
  /// password.
  @Test func emptyPasswordsHaveKeys() {
    let derived = PasswordKey.derive(
      from: secret([]), salt: Array("salt".utf8), rounds: 1, hash: .sha256)
    #expect(
      open(derived) == bytes("f135c27993baf98773c5cdb40a5706ce6a345cde61b000a67858650cd6a324d7"))
  }

  /// NIST's examples for FIPS 180-4 and FIPS 202: messages of 0, 24 and 448 bits.
  @Test(arguments: [
    (
      "", "da39a3ee5e6b4b0d3255bfef95601890afd80709",
      "0c63a75b845e4f7d01107d852e4c2485c51a50aaaa94fc61995e71bbee983a2a"
        + "c3713831264adb47fb6bd1e058d5f004"
    ),
    (
      "abc", "a9993e364706816aba3e25717850c26c9cd0d89d",
      "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b2"
        + "98d88cea927ac7f539f1edf228376d25"
    ),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
      "991c665755eb3a4b6bbdfb75c78a492e8c56a22c5c4d7e429bfdbc32b9d4ad5a"
        + "a04a1f076e62fea19eef51acd0657c22"
    ),
  ]) func digestsAreThoseOfTheStandards(message: String, sha1: String, sha3: String) {
    let message = Array(message.utf8)
    #expect(MessageDigest.digest(of: message.span, .sha1) == bytes(sha1))
    #expect(MessageDigest.digest(of: message.span, .sha3x384) == bytes(sha3))
    var inPortions = MessageDigest(.sha1)
    for index in message.indices { inPortions.update(message.span.extracting(index...index)) }
    #expect(inPortions.finish() == bytes(sha1))
  }

  /// FIPS 180-4 and RFC 1321 (A.5).
  @Test func digestsOfProtocolsAreThoseOfTheStandards() {
    let message = Array("abc".utf8)
    #expect(
      MessageDigest.digest(of: message.span, .sha256)
        == bytes("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
    #expect(
      MessageDigest.digest(of: message.span, .md5) == bytes("900150983cd24fb0d6963f7d28e17f72"))
    #expect(MessageDigest.Function.sha256.size == 32 && MessageDigest.Function.md5.size == 16)
  }

  /// RFC 4231, test cases 1 and 6, whose key is longer than a block.
  @Test func messageCodesAreThoseOfTheStandard() {
    let short = [UInt8](repeating: 0x0b, count: 20)
    #expect(
      open(MessageCode.hmac(key: short.span, message: Array("Hi There".utf8).span))
        == bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"))
    let long = [UInt8](repeating: 0xaa, count: 131)
    let message = Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)
    #expect(
      open(MessageCode.hmac(key: long.span, message: message.span))
        == bytes("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"))
  }
}

/// Returns the bytes of hexadecimal digits.
private func bytes(_ digits: String) -> [UInt8] { Hex.decode(digits) ?? [] }

private func secret(_ bytes: [UInt8]) -> SecretBytes { SecretBytes(copying: bytes.span) }

private func open(_ secret: borrowing SecretBytes) -> [UInt8] {
  secret.withBytes { bytes in bytes.indices.map { bytes[$0] } }
}

private func unwrap(_ wrapped: [UInt8], _ key: borrowing SecretBytes) -> [UInt8]? {
  guard let plain = KeyWrap.unwrap(wrapped.span, with: key) else { return nil }
  return open(plain)
}
