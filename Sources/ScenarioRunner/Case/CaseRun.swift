internal import PolicyEngine
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// The run of one case: the copy, the steps, the result.
struct CaseRun {
  private let document: ScenarioDocument
  private let version: ScenarioDocument.Version
  private let name: ByteString
  private let shared: SharedParts

  init(_ one: ScenarioCase, number: Int, sharing shared: SharedParts) {
    (document, version) = (one.document, one.version)
    name = ByteString("case-\(number)")
    self.shared = shared
  }

  /// Runs the case. Returns nil if the run was asked to stop.
  func run() -> ScenarioResult? {
    if shared.options.isStopping() { return nil }
    let start = Host.monotonicSeconds()
    // The copies are removed at the end, so nothing needs to be durable.
    let outcome = Faults.inject(Faults.Plan(skippingSyncs: true)) { self.outcome() }
    if shared.options.isStopping() {
      shared.directory.remove(name)
      return nil
    }
    let kept = keep(outcome)
    shared.directory.remove(name)
    return ScenarioResult(
      scenario: document.name, location: document.location, version: version.name, outcome: kept,
      seconds: Host.monotonicSeconds() - start)
  }

  private func outcome() -> ScenarioResult.Outcome {
    let state: CaseState
    do {
      state = try CaseState(
        document, version, in: try shared.directory.make(name), sharing: shared)
    } catch { return .error(ScenarioResult.Problem(at: document.location, error)) }
    var failures: [ScenarioFailure] = []
    var count = 0
    do {
      try state.recordMoment(ScenarioMoment.beginning)
    } catch { return .error(ScenarioResult.Problem(at: document.location, error)) }
    for step in document.steps where step.versions.contains(version.osVersion) {
      if shared.options.isStopping() { return .skipped("interrupted") }
      count += 1
      do {
        failures += try perform(step, state)
      } catch {
        return .error(ScenarioResult.Problem(at: step.location, error, failures: failures))
      }
    }
    if count == 0 { return .skipped("no step applies to version \(version.name)") }
    return failures.isEmpty ? .passed : .failed(failures)
  }

  /// Performs a step. Returns the failures of its expectations, or that of a step that was expected
  /// to fail in a certain way and did not.
  private func perform(_ step: ScenarioStep, _ state: CaseState) throws -> [ScenarioFailure] {
    guard let wanted = step.failure else { return try state.perform(step.action) }
    let expected = "the step fails with \(wanted.rawValue)"
    do {
      _ = try state.perform(step.action)
    } catch {
      let code = (error as? any ReportableError)?.errorCode ?? .internalError
      if code == wanted { return [] }
      return [
        ScenarioFailure(
          at: step.location, expected: expected, found: "it fails with \(code.rawValue): \(error)")
      ]
    }
    return [ScenarioFailure(at: step.location, expected: expected, found: "it succeeds")]
  }

  /// Moves the directory of a case that did not pass to the location in which the user wants to
  /// examine it.
  private func keep(_ outcome: ScenarioResult.Outcome) -> ScenarioResult.Outcome {
    guard let kept = shared.options.kept else { return outcome }
    switch outcome {
    case .passed, .skipped: return outcome
    case .failed, .error: break
    }
    let words = "\(document.name)-\(version.name)".map { character in
      character.isASCII && (character.isLetter || character.isNumber || ".-_".contains(character))
        ? character : "-"
    }
    do {
      try shared.directory.move(name, to: kept, as: ByteString(String(words)))
      return outcome
    } catch {
      // The outcome of the case is not lost.
      switch outcome {
      case .error(let problem):
        let known = (error as? any ReportableError)?.description ?? "\(error)"
        return .error(
          ScenarioResult.Problem(
            at: problem.location, "\(problem.message); \(known)", hint: problem.hint,
            failures: problem.failures))
      case .failed(let failures):
        return .error(
          ScenarioResult.Problem(at: document.location, error, failures: failures))
      case .passed, .skipped: return outcome
      }
    }
  }
}

extension ScenarioResult.Problem {
  /// A problem that an error caused.
  init(at location: PolicyLocation, _ error: any Error, failures: [ScenarioFailure] = []) {
    let known = error as? any ReportableError
    self.init(
      at: location, known?.description ?? "\(error)", hint: known?.hint, failures: failures)
  }
}
