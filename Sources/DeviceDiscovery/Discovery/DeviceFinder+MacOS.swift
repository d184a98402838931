internal import SandboxModel
internal import SystemIO

extension DeviceFinder {
  /// Scans the home directory of a macOS user.
  func macOS(_ home: borrowing Directory) -> Device {
    var survey = Survey(root: home.path)
    var finder = MacOSFinder()
    finder.lookAtContainers(in: home, &survey)
    finder.lookAtGroups(in: home, &survey)
    if case .folder(let directory) = survey.enter("Applications", in: home, as: "Applications") {
      finder.lookAtBundles(in: directory, as: "Applications", &survey)
    }
    var facts = DeviceFacts(platform: "macOS")
    if let system = system(ofHome: home.path, below: "Users") {
      let path = system.appending("Applications")
      if system != home.path, let directory = survey.outside(path) {
        finder.lookAtBundles(in: directory, as: path, &survey)
      }
      if let root = survey.outside(system) {
        facts.version = survey.systemVersion(in: root).version
      }
    }
    var drafts = finder.drafts
    Identification.identify(&drafts, &survey)
    let containers = LogicalNaming.containers(of: drafts, &survey)
    return Device(
      root: home.path, layout: .macOS, facts: facts, identity: identity(.macOS, home.path),
      apps: CoreSimulatorFinder.apps(of: drafts, containers), containers: containers,
      findings: survey.findings.sorted())
  }
}
