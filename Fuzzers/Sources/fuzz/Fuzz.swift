// One program for all fuzzers. FUZZ_TARGET selects the target that libFuzzer drives, and the
// program's arguments are libFuzzer's. `fuzz --targets` lists the targets; `fuzz --seeds PROJECT
// CORPUS` regenerates the seeds of the corpus.
//
// The tests include the targets without this file, and replay the corpus (FuzzCorpusTests).

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
