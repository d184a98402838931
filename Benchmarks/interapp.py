"""The inter-app commands on a device with many apps, and scenarios."""

import os
import plistlib
import shutil
import tempfile

import peers
import programs
from budgets import Line

APPS, SCENARIOS = 200, 100  # at full scale
HANDLERS_BUDGET = 0.100  # seconds
SHARE_BUDGET = 0.150  # reads the extensions as well
SCENARIOS_BUDGET = 20.0
METADATA = ".com.apple.mobile_container_manager.metadata.plist"
SHARE = "com.apple.share-services"
RULE = {"NSExtensionActivationSupportsText": True,
        "NSExtensionActivationSupportsImageWithMaxCount": 4}
PREDICATE = ("SUBQUERY(extensionItems, $item, SUBQUERY($item.attachments, $a, ANY "
             "$a.registeredTypeIdentifiers UTI-CONFORMS-TO \"public.image\").@count == "
             "$item.attachments.@count).@count == 1")


def lines(program, runs, scale):
    """Yields a line for each budget."""
    scratch = tempfile.mkdtemp(prefix="sandboxctl-bench-", dir="/tmp")
    try:
        yield from between(program, runs, scratch, max(1, int(APPS * scale)))
        yield scenarios(program, runs, scratch, max(1, int(SCENARIOS * scale)))
    finally:
        shutil.rmtree(scratch)


def between(program, runs, scratch, apps):
    """Measures each command by wall time."""
    root = os.path.join(scratch, "device")
    make_device(root, apps)
    environment = os.environ | peers.environment(os.path.join(scratch, "home"))
    runs = max(runs, programs.RUNS_OF_SHORT)
    for name, words, budget in (
            ("handlers --type", ["handlers", "--type", "public.png"], HANDLERS_BUDGET),
            ("handlers --scheme", ["handlers", "--scheme", "app-0"], HANDLERS_BUDGET),
            ("open", ["open", "app-0://host/path?x=1"], HANDLERS_BUDGET),
            ("share", ["share", "text:a", "--json"], SHARE_BUDGET)):
        command = [program, "interapp", *words, "--root", root, "--os-version", "17"]
        taken = programs.median_seconds(command, runs, environment)
        yield Line.absolute(f"interapp {name}, {apps} apps", taken, budget)
    shutil.rmtree(root)


def scenarios(program, runs, scratch, count):
    """Measures scenarios with an update, a backup and a restore, by wall time."""
    files = []
    for number in range(count):
        files.append(os.path.join(scratch, f"{number}.yaml"))
        with open(files[-1], "w", encoding="utf-8") as file:
            file.write(SCENARIO.format(number=number))
    environment = os.environ | peers.environment(os.path.join(scratch, "home"))
    environment.pop("TMPDIR", None)
    taken = programs.median_seconds([program, "scenario", "run", "--quiet", *files],
                                    max(1, runs // 3), environment)
    return Line.absolute(f"{count} scenarios on the sample device", taken, SCENARIOS_BUDGET)


SCENARIO = """scenario: "number {number}"
schema: 1
device: {{sample: 0}}
steps:
  - write: {{path: apps/org.example.notebook/data/Documents/a.txt, text: "{number}"}}
  - update: {{app: notebook, version: "9.0"}}
  - backup: {{name: evening}}
  - restore: {{to: new-device, snapshot: evening}}
  - expect:
      - match: [apps/org.example.notebook/data/Documents/a.txt, "apps/org.example.notebook/data/Documents/Notes/**"]
        same-bytes: evening
"""


def make_device(root, apps):
    """Makes a simulator device. Each app opens several types, and has URL schemes, its own types and
    two extensions."""
    for number in range(apps):
        identifier = f"org.example.app{number}"
        containers = os.path.join(root, "Containers")
        bundle = os.path.join(containers, "Bundle", "Application", uuid(number, 1))
        data = os.path.join(containers, "Data", "Application", uuid(number, 2))
        for folder in ("Documents", "Library/Caches", "tmp"):
            os.makedirs(os.path.join(data, folder))
        os.makedirs(bundle)
        for container in (bundle, data):
            write(os.path.join(container, METADATA), {"MCMMetadataIdentifier": identifier})
        app = os.path.join(bundle, f"App{number}.app")
        write(os.path.join(app, "Info.plist"), information(identifier, number))
        for extension, rule in (("Share", RULE), ("Images", PREDICATE)):
            write(os.path.join(app, "PlugIns", f"{extension}.appex", "Info.plist"), {
                "CFBundleIdentifier": f"{identifier}.{extension.lower()}", "CFBundleVersion": "1",
                "NSExtension": {
                    "NSExtensionPointIdentifier": SHARE, "NSExtensionPrincipalClass": "Share",
                    "NSExtensionAttributes": {"NSExtensionActivationRule": rule}}})


def information(identifier, number):
    """Returns the Info.plist of an app, about as long as a real one."""
    types = [["public.image"], ["com.adobe.pdf", "public.text"], [f"{identifier}.document"]]
    return {
        "CFBundleIdentifier": identifier, "CFBundleName": f"App {number}",
        "CFBundleVersion": "1", "CFBundleShortVersionString": "1.0",
        "CFBundleDocumentTypes": [
            {"CFBundleTypeName": f"Type {index}", "LSItemContentTypes": content,
             "LSHandlerRank": ["Alternate", "Default", "Owner"][index], "CFBundleTypeRole": "Editor"}
            for index, content in enumerate(types)],
        "CFBundleURLTypes": [
            {"CFBundleURLName": f"{identifier}.url", "CFBundleURLSchemes": [f"app-{number}", "both"]}],
        "UTExportedTypeDeclarations": [
            {"UTTypeIdentifier": f"{identifier}.document", "UTTypeConformsTo": ["public.data"],
             "UTTypeTagSpecification": {"public.filename-extension": [f"app{number}"]}}],
        "UIRequiredDeviceCapabilities": ["arm64"],
        "UISupportedInterfaceOrientations": ["UIInterfaceOrientationPortrait"] * 4,
        "NSAppTransportSecurity": {"NSAllowsArbitraryLoads": False},
        **{f"NS{name}UsageDescription": "The app uses it for what the user chooses to do. " * 2
           for name in ("Camera", "Microphone", "PhotoLibrary", "Contacts", "Calendars", "Location")},
    }


def uuid(number, kind):
    return f"0A0A0A0A-{kind:04}-4000-8000-{number:012}"


def write(path, value):
    """Writes a property list, in the binary form as in installed bundles."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        plistlib.dump(value, file, fmt=plistlib.FMT_BINARY)
