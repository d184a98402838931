import TestSupport
import Testing

/// The rules of prune, verified with a model (`PruneModel`).
struct PruneModelTests {
  /// No order of steps loses a blob that a snapshot needs, and the exploration reaches all relevant
  /// states. `make test` omits models with two writers and a reader; `make test-all` explores all.
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

  /// The same in a store without rename: with one writer, a removal and a reader, and with a
  /// damaged object. `make test-all` also has models with two writers.
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

  /// Without any one of the rules for stores without rename, the model finds a violation.
  @Test(arguments: PruneModel.Rule.allCases.filter { $0.isOfObjects })
  func eachRuleIsNeededWithoutRename(rule: PruneModel.Rule) {
    let model = PruneModel(
      writers: 1, hasReader: false, removals: 1, hasDamage: rule.isOfDamage, objects: true,
      without: rule)
    #expect(!model.explore().violations.isEmpty)
  }

  /// Without any one of the rules, the model finds a violation, which shows that it can fail.
  @Test(arguments: PruneModel.Rule.allCases.filter { !$0.isOfObjects }) func eachRuleIsNeeded(
    rule: PruneModel.Rule
  ) {
    let model = PruneModel(
      writers: rule.isOfReaders || rule.isOfDamage ? 1 : 2, hasReader: rule.isOfReaders,
      hasDamage: rule.isOfDamage, without: rule)
    #expect(!model.explore().violations.isEmpty)
  }
}
