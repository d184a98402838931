import TestSupport
import Testing

/// The rules of prune, explored by a model (`PruneModel`).
struct PruneModelTests {
  /// No order of steps loses a blob that a snapshot needs, and the exploration reaches what
  /// matters. `make test` has no reader beside two writers; `make test-all` has all.
  @Test func noCommittedSnapshotLacksABlob() {
    let models =
      Sampling.isWhole
      ? [
        PruneModel(), PruneModel(hasReader: false, hasDamage: true),
        PruneModel(hasReader: false, condemnsUnindexed: true),
      ]
      : [
        PruneModel(hasReader: false), PruneModel(writers: 1),
        PruneModel(writers: 1, hasReader: false, hasDamage: true),
        PruneModel(writers: 1, hasReader: false, condemnsUnindexed: true),
      ]
    for model in models {
      let result = model.explore()
      #expect(result.violations.isEmpty, "\(result.violations.first ?? "")")
      #expect(result.states > 50_000, "\(result.states)")
      #expect(result.committed > 0 && result.removed > 0 && result.fenced > 0)
      #expect(result.copied > 0 && result.returned > 0)
      #expect((result.read > 0) == model.hasReader)
      #expect((result.mended > 0) == model.hasDamage)
      #expect((result.takenOver > 0) == model.hasDamage)
      #expect((result.condemnedEarly > 0) == model.condemnsUnindexed)
      #expect((result.removedUnindexed > 0) == model.condemnsUnindexed)
    }
  }

  /// The same in a store without rename: for one writer beside a removal and a reader, and with a
  /// damaged object; `make test-all` has two writers as well.
  @Test func noCommittedSnapshotLacksABlobWithoutRename() {
    var models = [
      PruneModel(writers: 1, removals: 1, objects: true),
      PruneModel(writers: 1, hasReader: false, removals: 0, hasDamage: true, objects: true),
    ]
    if Sampling.isWhole {
      models += [
        PruneModel(hasReader: false, removals: 0, objects: true),
        PruneModel(writers: 1, hasReader: false, removals: 1, hasDamage: true, objects: true),
        PruneModel(writers: 1, hasReader: false, condemnsUnindexed: true, objects: true),
      ]
    }
    for model in models {
      let result = model.explore()
      #expect(result.violations.isEmpty, "\(result.violations.first ?? "")")
      #expect(result.states > 10_000, "\(result.states)")
      #expect(result.committed > 0 && result.fenced > 0 && result.visible > 0)
      #expect(result.renewed > 0 && result.sleeping > 0 && result.excluded > 0)
      #expect((result.mended > 0) == model.hasDamage)
    }
  }

  /// The model finds a violation if any one rule of stores without rename is dropped.
  @Test(arguments: PruneModel.Rule.allCases.filter { $0.isOfObjects })
  func eachRuleIsNeededWithoutRename(rule: PruneModel.Rule) {
    let model = PruneModel(
      writers: 1, hasReader: false, removals: 1, hasDamage: rule.isOfDamage, objects: true,
      without: rule)
    #expect(!model.explore().violations.isEmpty)
  }

  /// The model finds a violation if any one rule is dropped, so it can fail.
  @Test(arguments: PruneModel.Rule.allCases.filter { !$0.isOfObjects }) func eachRuleIsNeeded(
    rule: PruneModel.Rule
  ) {
    let model = PruneModel(
      writers: rule.isOfReaders || rule.isOfDamage ? 1 : 2, hasReader: rule.isOfReaders,
      hasDamage: rule.isOfDamage, without: rule)
    #expect(!model.explore().violations.isEmpty)
  }
}
