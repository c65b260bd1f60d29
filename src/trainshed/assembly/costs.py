"""What it costs: the file of prices, and the service that adds up."""

from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.service.costs import CostService
from trainshed.settings.prices_file import PricesFile


def make_costs(shared: SharedParts, storage: Storage) -> CostService:
    """Raises SettingsError where the file of prices cannot be used."""
    path = shared.settings.prices
    if path is None:
        return CostService(storage.store, shared.clock)
    file = PricesFile(path)
    return CostService(storage.store, shared.clock, file, lambda: file.mistake)
