import Foundation
import SystemIO
import TestSupport
import Testing

/// Tests of TestSupport.
struct TestSupportTests {
  @Test func aTemporaryDirectoryIsRemovedWithItsContents() throws {
    var temporary: TemporaryDirectory? = try TemporaryDirectory("gone")
    let path = try #require(temporary?.path)
    try temporary?.write("x", at: "a/b/c.txt")
    try temporary?.directory.directory("a").setPermissions(0)
    #expect(try temporary?.directory.status("a").permissions == 0)
    temporary = nil
    #expect(throws: SystemError.self) { _ = try Directory.open(path: path) }
  }

  @Test(.enabled(if: (try? Mount.isPermitted()) ?? false))
  func aTemporaryDirectoryIsRemovedWithAMountInIt() throws {
    var temporary: TemporaryDirectory? = try TemporaryDirectory("mounted", inMemory: true)
    let path = try #require(temporary?.path)
    try temporary?.directory.createDirectory("a volume")
    let outer = try Mount(inMemory: "size=1m", on: path.appending("a volume"))
    let inner = try Mount(
      on: Directory.open(path: path.appending("a volume")), at: path.appending("a volume"), "inner")
    try withExtendedLifetime((outer, inner)) {
      try temporary?.write("x", at: "a volume/inner/file")
      temporary = nil
      #expect(throws: SystemError.self) { _ = try Directory.open(path: path) }
    }
  }

  @Test func aProgramReturnsOutputErrorsAndExitCode() throws {
    let outcome = try Program.run(
      "sh", ["-c", "cat; echo $WORD >&2; exit 7"], environment: ["WORD": "talk"],
      input: Array("text".utf8))
    #expect(outcome.output == "text")
    #expect(outcome.errors == "talk\n")
    #expect(outcome.code == 7)
    let killed = try Program.run("sh", ["-c", "kill -KILL $$"])
    #expect(killed.code == -9)
    #expect(throws: Program.Failure.self) { try Program.run("no-such-program-anywhere") }
    #expect(throws: Program.Failure.self) { try Program.run("sleep", ["60"], timeout: 0.2) }
  }

  @Test func aProgramWithMuchOutputDoesNotBlock() throws {
    let outcome = try Program.run("sh", ["-c", "head -c 3000000 /dev/zero; echo end >&2"])
    #expect(outcome.standardOutput.count == 3_000_000)
    #expect(outcome.errors == "end\n")
  }

  @Test func theSameSeedGivesTheSameNumbers() {
    // The first numbers for the seed 1234567, as printed by the program of the algorithm's authors.
    var numbers = Seeded(1_234_567)
    #expect(numbers.next() == 6_457_827_717_110_365_317)
    #expect(numbers.next() == 3_203_168_211_198_807_973)
    var again = Seeded.fresh()
    var same = Seeded(again.seed)
    #expect(again.fileName() == same.fileName())
  }

  @Test func sweepHasItsFirstStepAndOneOfEachStride() {
    var random = Seeded.fresh()
    #expect(Array(SweepSteps(width: 1, using: &random).prefix(5)) == [1, 2, 3, 4, 5])
    var starts: Set<Int> = []
    for _ in 0..<100 {
      let steps = Array(SweepSteps(width: 4, using: &random).prefix(5))
      #expect(steps[0] == 1 && (2...5).contains(steps[1]), "\(steps)")
      #expect(zip(steps.dropFirst(), steps.dropFirst(2)).allSatisfy { $1 == $0 + 4 }, "\(steps)")
      starts.insert(steps[1])
    }
    #expect(starts == [2, 3, 4, 5])
  }

  @Test func sampleHasOneOfEachStride() {
    #expect(Sampling.some(of: [Int](), 3, "nothing").isEmpty)
    #expect(Sampling.some(of: [1, 2], 1, "everything") == [1, 2])
    let all = Array(0..<20)
    let some = Sampling.some(of: all, 6, "some")
    #expect(Sampling.isWhole ? some == all : (3...4).contains(some.count), "\(some)")
    #expect(Sampling.some(of: [7], 6, "one") == [7])
    #expect(Sampling.steps(3, upTo: 1, "one step") == [1])
  }

  @Test func growthDistinguishesQuadraticTimeFromSorting() throws {
    let square = try Growth(counts: [300, 3000]) { count in
      let numbers = Array(0..<count)
      return { for number in numbers { _ = numbers.firstIndex(of: number) } }
    }
    #expect(!square.isNLogN, "\(square)")
    let sorting = try Growth(counts: [300, 3000]) { count in
      let numbers = (0..<count).map { $0 &* 7919 % count }
      return { _ = numbers.sorted() }
    }
    #expect(sorting.isNLogN, "\(sorting)")
    #expect(sorting.times.map(\.count) == [300, 3000])
  }

  @Test func withoutPrivilegesOpeningIsRefused() throws {
    let temporary = try TemporaryDirectory("refusal")
    try temporary.write("x", at: "closed")
    try temporary.directory.setPermissions(0, of: "closed")
    let path = temporary.path("closed")
    let error = #expect(throws: SystemError.self) {
      try Unprivileged.run { _ = try Descriptor.open(path: path) }
    }
    #expect(error?.number == EACCES)
    if Host.userID == 0 {
      // The file can be read only with privileges, so they are restored.
      #expect(try Descriptor.open(path: path).readAll(limit: 9) == [UInt8(ascii: "x")])
    }
  }
}
