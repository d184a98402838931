/// A function of untrusted bytes.
///
/// It must return for any input: a trap, an endless loop, or memory beyond libFuzzer's limit is a
/// finding. If it accepts the bytes, it checks the properties that must hold.
struct Target: Sendable {
  /// The name in FUZZ_TARGET, the corpus and the dictionary.
  let name: String
  /// Reads bytes of any content.
  let run: @Sendable ([UInt8]) -> Void

  static let all =
    [Target(name: "canary", run: canary)] + archiveTargets + modelTargets + deviceTargets
    + hashTargets + foreignArchiveTargets
    + logTargets + ageTargets
    + mobileSyncTargets
    + manifestTargets
    + androidTargets
    + appDataTargets
    + peerTargets
    + interAppTargets
    + sftpTargets
    + storeTargets
    + locationTargets
    + migrationTargets

  /// Crashes on certain bytes. A fuzzer that does not find them would not find anything else.
  @Sendable private static func canary(_ bytes: [UInt8]) {
    guard bytes.count == 3, bytes[0] == 0x53, bytes[1] == 0x42 else { return }
    require(bytes[2] != 0x21, "the canary was found")
  }
}

/// Ends the process with a finding unless the condition holds.
func require(_ holds: Bool, _ message: @autoclosure () -> String) {
  if !holds { fatalError(message()) }
}
