import TestSupport
import Testing

/// The rules of the right to remove objects, verified with a model (`RightModel`).
struct RightModelTests {
  /// No order of steps gives the right to two programs, and none leaves it without an owner, in
  /// which case the next program would have to wait for an hour.
  @Test func oneProgramHasTheRightAndEachRightHasAnOwner() {
    let result = RightModel().explore()
    #expect(result.violations.isEmpty, "\(result.violations.first ?? "")")
    #expect(result.states > 1_000, "\(result.states)")
    #expect(result.held > 0 && result.takenOver > 0 && result.lost > 0)
    #expect(result.blocked == 0)
  }

  /// The right is also exclusive among programs of this and an earlier version. Only programs of
  /// the earlier version leave it without an owner when they are killed.
  @Test(arguments: Sampling.isWhole ? [1, 2, 3] : [1])
  func oneProgramHasTheRightBesideEarlierVersions(earlier: Int) {
    let result = RightModel(earlier: earlier).explore()
    #expect(result.violations.isEmpty, "\(result.violations.first ?? "")")
    #expect(result.held > 0 && result.takenOver > 0 && result.blocked > 0)
  }

  /// Without any one of the rules, the model finds a violation, which shows that it can fail.
  @Test(arguments: RightModel.Rule.allCases) func eachRuleIsNeeded(rule: RightModel.Rule) {
    // Only a program of an earlier version can add its name to the directory of another program.
    let model = RightModel(earlier: rule == .ownersAreListed ? 1 : 0, without: rule)
    #expect(!model.explore().violations.isEmpty)
  }
}
