// One program for all fuzzers. FUZZ_TARGET selects the target that libFuzzer drives, and the
// program's arguments are libFuzzer's. `fuzz --targets` lists the targets; `fuzz --seeds PROJECT
// CORPUS` regenerates the seeds of the corpus.
//
// A target is a function of untrusted bytes. It must return for any input: a trap, an endless loop,
// or memory beyond libFuzzer's limit is a finding. If it accepts the bytes, it checks the
// properties that must hold.

/// The function that libFuzzer calls with each input.
typealias Entry = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

@_silgen_name("LLVMFuzzerRunDriver")
func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ entry: Entry
) -> CInt

@_silgen_name("getenv")
func environment(_ name: UnsafePointer<CChar>) -> UnsafePointer<CChar>?

/// The target that this process drives.
private let target: Target = {
  let name = environment("FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let target = Target.all.first(where: { $0.name == name }) else {
    fatalError("FUZZ_TARGET is not one of \(Target.all.map(\.name).joined(separator: ", "))")
  }
  return target
}()

/// The entry point under the name that libFuzzer's own main function uses.
@_cdecl("LLVMFuzzerTestOneInput")
package func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  target.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

/// The name that SwiftPM gives the main function of this module.
@_cdecl("fuzz_main")
package func main(
  _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> CInt {
  let words = (0..<Int(count)).compactMap { arguments?[$0].map { String(cString: $0) } }
  switch words.dropFirst().first {
  case "--targets":
    for target in Target.all { print(target.name) }
    return 0
  case "--seeds":
    return Seeds.main(Array(words.dropFirst(2)))
  default:
    var (count, arguments) = (count, arguments)
    return runDriver(&count, &arguments, testOneInput)
  }
}

/// A function that reads untrusted bytes.
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

  /// Crashes on certain bytes. A fuzzer that does not find them finds nothing.
  @Sendable private static func canary(_ bytes: [UInt8]) {
    guard bytes.count == 3, bytes[0] == 0x53, bytes[1] == 0x42 else { return }
    require(bytes[2] != 0x21, "the canary was found")
  }
}

/// Ends the process with a finding unless the condition holds.
func require(_ holds: Bool, _ message: @autoclosure () -> String) {
  if !holds { fatalError(message()) }
}
