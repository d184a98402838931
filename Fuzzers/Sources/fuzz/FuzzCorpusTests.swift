import Foundation
import Testing

/// Replays the corpus of the fuzzers without instrumentation. A finding ends the process.
@Suite struct FuzzCorpusTests {
  private static let corpus = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().appending(path: "../../Corpus").standardized

  private static let names = Target.all.map(\.name).filter { $0 != "canary" }

  @Test(arguments: names) func everySeedIsHandled(name: String) throws {
    let target = try #require(Target.all.first { $0.name == name })
    let seeds = try FileManager.default.contentsOfDirectory(
      at: Self.corpus.appending(path: name), includingPropertiesForKeys: nil)
    #expect(!seeds.isEmpty, "the target has no corpus: run 'make fuzz-seeds'")
    for seed in seeds { target.run(Array(try Data(contentsOf: seed))) }
  }

  @Test func everyCorpusHasATarget() throws {
    let corpora = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
    #expect(Set(corpora).subtracting(Self.names) == [])
    #expect(Set(Self.names).count == Target.all.count - 1, "two targets have one name")
  }
}
